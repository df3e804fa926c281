//===- WarpState.h - where all lanes of a warp are together -----------------------------------------------===//

#ifndef SASS_LIB_IR_WARPSTATE_H
#define SASS_LIB_IR_WARPSTATE_H

#include "Sass/Sass.h"

namespace sass {

/// Finds, in the code of a function, the writes of UR, UP and B that all lanes of a warp reach together, and says so in their property. The others are warp state:
/// such registers exist once for lanes that are apart, so the order of all writes counts and not only the edges of the flow graph.
void markConverged(mlir::Region &code);

} // namespace sass

#endif // SASS_LIB_IR_WARPSTATE_H
