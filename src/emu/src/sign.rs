//! The same bits as a signed or an unsigned number.

/// An unsigned number whose bits can be read as a signed one.
pub trait AsSigned {
    /// The signed type.
    type Signed;
    /// The same bits.
    fn signed(self) -> Self::Signed;
}

/// A signed number whose bits can be read as an unsigned one.
pub trait AsUnsigned {
    /// The unsigned type.
    type Unsigned;
    /// The same bits.
    fn unsigned(self) -> Self::Unsigned;
}

macro_rules! same_bits {
    ($($u:ident $s:ident),*) => {$(
        impl AsSigned for $u {
            type Signed = $s;
            #[inline(always)]
            fn signed(self) -> $s {
                self as $s
            }
        }
        impl AsUnsigned for $s {
            type Unsigned = $u;
            #[inline(always)]
            fn unsigned(self) -> $u {
                self as $u
            }
        }
    )*};
}

same_bits!(u8 i8, u16 i16, u32 i32, u64 i64);
