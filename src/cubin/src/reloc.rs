//! Names of CUDA relocations. A name says what is put where: `R_CUDA_ABS32_LO_32` puts the low 32 bits of the address at
//! bit 32 of the instruction.

/// Number and name of the relocations seen in cubins for sm_70 and up; names as cuobjdump 13.5 gives them.
const NAMES: &[(u32, &str)] = &[
    (2, "R_CUDA_64"),
    (55, "R_CUDA_ABS32_32"),
    (56, "R_CUDA_ABS32_LO_32"),
    (57, "R_CUDA_ABS32_HI_32"),
    (58, "R_CUDA_ABS47_34"),
    (59, "R_CUDA_ABS16_32"),
    (62, "R_CUDA_FUNC_DESC32_LO_32"),
    (63, "R_CUDA_FUNC_DESC32_HI_32"),
    (64, "R_CUDA_CONST_FIELD19_40"),
    (66, "R_CUDA_CONST_FIELD21_38"),
    (68, "R_CUDA_YIELD_OPCODE9_0"),
    (69, "R_CUDA_YIELD_CLEAR_PRED4_87"),
    (73, "R_CUDA_UNUSED_CLEAR64"),
    (74, "R_CUDA_ABS24_40"),
    (75, "R_CUDA_ABS55_16_34"),
];

/// The name of a relocation, if it is one that was seen.
pub fn name(kind: u32) -> Option<&'static str> {
    NAMES.binary_search_by_key(&kind, |(k, _)| *k).ok().map(|i| NAMES[i].1)
}
