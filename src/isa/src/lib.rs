//! sass2mlir: the `isa` room.
