//! The GPU targets that the project knows.

use std::fmt;
use std::str::FromStr;

macro_rules! targets {
    ($($name:ident $text:literal $number:literal $specific:literal;)*) => {
        /// A GPU target (a compute capability, with the `a` of architecture-specific code where it has one).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Target {
            $(#[doc = $text] $name,)*
        }

        impl Target {
            /// Every target, in ascending order.
            pub const ALL: [Target; [$($number),*].len()] = [$(Target::$name),*];

            /// The name as NVIDIA's tools write it, for example `sm_87`.
            pub const fn name(self) -> &'static str {
                match self { $(Target::$name => $text,)* }
            }

            /// The number in the name: 87 for `sm_87`, 90 for `sm_90a`.
            pub const fn number(self) -> u32 {
                match self { $(Target::$name => $number,)* }
            }

            /// True for the `a` variants, whose code runs on that exact architecture only.
            pub const fn is_arch_specific(self) -> bool {
                match self { $(Target::$name => $specific,)* }
            }

            /// Where compilers find the memory descriptor that accesses through uniform registers name but do not print: its byte offset in
            /// constant bank 0 (observed in code for these targets). From sm_90 on the text shows the register.
            pub const fn descriptor_offset(self) -> Option<i64> {
                match self.number() {
                    80..90 => Some(0x118),
                    _ => None,
                }
            }

            /// Whether text says `SNAN`. The last `nvdisasm` that knows sm_70 and sm_72, of CUDA 12, writes `QNAN` for every NaN but those
            /// of doubles.
            pub const fn names_signaling_nans(self) -> bool {
                self.number() >= 75
            }

            /// The uniform register that reads as zero, `URZ`: 63 in the 6-bit fields up to sm_90a, 255 in the 8-bit ones from sm_100 on.
            pub const fn uniform_zero(self) -> u8 {
                if self.number() < 100 { 63 } else { 255 }
            }
        }
    };
}

targets! {
    Sm70 "sm_70" 70 false;
    Sm72 "sm_72" 72 false;
    Sm75 "sm_75" 75 false;
    Sm80 "sm_80" 80 false;
    Sm86 "sm_86" 86 false;
    Sm87 "sm_87" 87 false;
    Sm88 "sm_88" 88 false;
    Sm89 "sm_89" 89 false;
    Sm90 "sm_90" 90 false;
    Sm90a "sm_90a" 90 true;
    Sm100 "sm_100" 100 false;
    Sm100a "sm_100a" 100 true;
    Sm101 "sm_101" 101 false;
    Sm101a "sm_101a" 101 true;
    Sm103 "sm_103" 103 false;
    Sm103a "sm_103a" 103 true;
    Sm110 "sm_110" 110 false;
    Sm110a "sm_110a" 110 true;
    Sm120 "sm_120" 120 false;
    Sm120a "sm_120a" 120 true;
    Sm121 "sm_121" 121 false;
    Sm121a "sm_121a" 121 true;
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown target `{0}`; known: sm_70 72 75 80 86 87 88 89 90 90a 100 100a 101 101a 103 103a 110 110a 120 120a 121 121a"
)]
pub struct UnknownTarget(pub String);

impl FromStr for Target {
    type Err = UnknownTarget;

    /// Takes `sm_87` and the folder name `SM87`. `sm_100f` is `sm_100`: the `f` says which other targets run the code, not how it is
    /// encoded.
    fn from_str(s: &str) -> Result<Target, UnknownTarget> {
        let lower = s.to_ascii_lowercase();
        let number = lower.strip_prefix("sm_").or_else(|| lower.strip_prefix("sm"));
        number
            .map(|n| n.strip_suffix('f').filter(|n| n.len() == 3).unwrap_or(n))
            .and_then(|n| Target::ALL.into_iter().find(|t| &t.name()[3..] == n))
            .ok_or_else(|| UnknownTarget(s.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for t in Target::ALL {
            assert_eq!(t.to_string().parse::<Target>(), Ok(t));
            assert_eq!(t.name().replace("sm_", "SM").parse::<Target>(), Ok(t));
        }
        assert_eq!("sm_103f".parse::<Target>(), Ok(Target::Sm103));
        assert!("sm_90f".parse::<Target>().is_err());
        assert!("sm_99".parse::<Target>().is_err());
        assert!("sm_".parse::<Target>().is_err());
    }
}
