//! Where the numbers of the latency model come from.

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Mesa's NAK compiler.
    Nak,
    /// Mesa's NAK compiler, of a target that is akin: of this one it knows nothing.
    Kin(&'static str),
    /// The least gap in vendor code, seen at that many places.
    Mined {
        /// Places with exactly this gap.
        sites: u32,
        /// Kernels that they are in.
        kernels: u32,
        /// Only seen with a wait for some scoreboard between the two. Where both were seen, the least gaps with and without one are
        /// mostly the same (`probe mine` says for how many pairs); for these it is assumed.
        waits: bool,
    },
    /// Both go through one queue, in order.
    InOrder,
    /// Mined for another reader, and NAK says how much sooner or later this one reads.
    Spread,
    /// That of a class which reads and overwrites registers alike.
    Akin,
    /// Mined for another overwriter, whose result is there no later.
    Sooner,
    /// What both take until the same reader may follow.
    Derived,
    /// A scoreboard counts up this long after the issue.
    Signal,
    /// No number for this pair: the largest for the earlier instruction's class.
    Largest,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Nak => f.write_str("Mesa NAK"),
            Source::Kin(tables) => write!(f, "Mesa NAK, of {tables}"),
            Source::Mined { sites, kernels, waits } => {
                let how = if *waits { ", all with a wait between" } else { "" };
                write!(f, "mined: {sites} sites in {kernels} kernels{how}")
            }
            Source::InOrder => f.write_str("one queue, in order"),
            Source::Spread => f.write_str("mined for another reader"),
            Source::Akin => f.write_str("as for a class that is akin"),
            Source::Sooner => f.write_str("mined for a result that is there sooner"),
            Source::Derived => f.write_str("from how long both take"),
            Source::Signal => f.write_str("mined: the least in any vendor kernel"),
            Source::Largest => f.write_str("largest for the class"),
        }
    }
}
