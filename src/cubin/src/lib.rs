//! sass2mlir: the `cubin` room.
