//! sass2mlir: the `ir` room.
