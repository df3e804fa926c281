//! sass2mlir: the `passes` room.
