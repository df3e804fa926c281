//! sass2mlir: the `probe` room.
