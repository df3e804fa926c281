//===- RegisterInsts.cpp - registers the op classes of all mnemonics ------------------------------------===//

#include "Sass/SassInsts.h"

void sass::SassDialect::registerInstructions() { registerSassDialectOperations(this); }
