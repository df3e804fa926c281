//===- SassInsts.h - one op class per mnemonic (large: include it only where a class is named) --------===//

#ifndef SASS_SASSINSTS_H
#define SASS_SASSINSTS_H

#include "Sass/Sass.h"

#define GET_OP_CLASSES
#include "Sass/SassInsts.h.inc"

#endif // SASS_SASSINSTS_H
