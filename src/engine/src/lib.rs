//! sass2mlir: the `engine` room.
