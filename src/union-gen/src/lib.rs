//! sass2mlir: the `union-gen` room.
