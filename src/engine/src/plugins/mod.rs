//! Passes in shared libraries: `include/sass_plugin.h` from the host's side.
//!
//! [`kind`](kind()) tells what a library is without running any of it. [`load`] gives its passes, which are passes like any other: what
//! they ask for is an edit list, applied and checked as that of a built-in one. They run here, or in processes of their own
//! ([`Isolation::Processes`]), where a crash or an endless loop costs the kernel at hand and nothing else.

mod asked;
mod describe;
mod host;
mod kind;
mod library;
mod message;
mod serve;
mod workers;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use passes::{Context, OptionSpec, Options, Pass, PassResult, Refusal, Skipped};

pub use kind::{LibraryKind, kind};
pub use serve::serve;
pub use workers::Launcher;

use library::Library;
use message::{Answer, Ended};
use workers::Workers;

/// Where the passes of a library run.
pub enum Isolation {
    /// In this process: for libraries that are trusted like the program itself.
    None,
    /// In processes that the launcher starts.
    Processes(Launcher),
}

/// A pass of a library.
pub struct Plugin {
    name: String,
    summary: String,
    caution: Option<String>,
    options: Vec<OptionSpec>,
    /// Position in its library.
    at: usize,
    library: Arc<Place>,
}

/// Where a library is.
struct Place {
    file: PathBuf,
    runs: Runs,
}

enum Runs {
    Here(Library),
    Processes(Workers),
}

/// The passes of a library. The error names the file.
///
/// With [`Isolation::None`] code of the library runs at once, as it does whenever one is loaded.
pub fn load(file: &Path, isolation: Isolation) -> Result<Vec<Plugin>, String> {
    let in_file = |why: String| format!("{}: {why}", file.display());
    let (runs, passes) = match isolation {
        Isolation::None => {
            let library = Library::open(file).map_err(in_file)?;
            let passes = library.passes().map_err(in_file)?;
            (Runs::Here(library), passes)
        }
        Isolation::Processes(launcher) => {
            let (workers, passes) = Workers::start(launcher, file).map_err(in_file)?;
            (Runs::Processes(workers), passes)
        }
    };
    describe::check(&passes).map_err(in_file)?;
    let file = file.to_owned();
    let library = Arc::new(Place { file, runs });
    let pass = |(at, info): (usize, message::PassInfo)| Plugin {
        options: info.options.into_iter().map(describe::spec).collect(),
        name: info.name,
        summary: info.summary,
        caution: info.caution,
        at,
        library: library.clone(),
    };
    Ok(passes.into_iter().enumerate().map(pass).collect())
}

impl Plugin {
    /// The library.
    pub fn file(&self) -> &Path {
        &self.library.file
    }

    fn answer(&self, cx: &Context<'_>, kernel: &ir::Kernel, options: &Options) -> Result<Answer, String> {
        match &self.library.runs {
            Runs::Here(library) => library.run(self.at, cx, kernel, options),
            Runs::Processes(workers) => workers.run(self.at, cx, kernel, options),
        }
    }

    fn result(&self, cx: &Context<'_>, kernel: &ir::Kernel, answer: Answer) -> Result<PassResult, String> {
        let edits = answer.edits.iter().map(|asked| asked.edit(cx.isa, kernel));
        let edits = ir::EditList {
            edits: edits.collect::<Result<_, _>>()?,
        };
        // What cannot be applied is said here, where the library is known.
        let applied = kernel.clone().apply(cx.isa, &edits);
        applied.map_err(|e| e.to_string())?;
        let mut edited: Vec<u32> = answer.edits.iter().map(|asked| asked.op).collect();
        edited.sort_unstable();
        edited.dedup();
        let ops = edited.len();
        let offsets = host::offsets(kernel);
        let skipped = answer.skipped.into_iter().map(|(op, reason)| Skipped {
            offset: offsets.get(op as usize).copied().unwrap_or_default(),
            reason,
        });
        Ok(PassResult {
            // A pass that edits does fire.
            sites: answer.sites.map_or(ops, |n| n as usize).max(usize::from(ops > 0)),
            ops,
            edits,
            headline: answer.headline,
            skipped: skipped.collect(),
            notes: answer.notes,
            broken: None,
        })
    }
}

impl Pass for Plugin {
    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> &str {
        &self.summary
    }

    fn caution(&self) -> Option<&str> {
        self.caution.as_deref()
    }

    fn options(&self) -> &[OptionSpec] {
        &self.options
    }

    fn run(&self, cx: &Context<'_>, kernel: &ir::Kernel, options: &Options) -> Result<PassResult, Refusal> {
        let found = self.answer(cx, kernel, options).and_then(|mut answer| {
            match std::mem::replace(&mut answer.ended, Ended::Done) {
                Ended::Done => self.result(cx, kernel, answer).map(Ok),
                Ended::Refused(why) => Ok(Err(Refusal(why))),
                Ended::Failed(why) => Err(why),
            }
        });
        found.unwrap_or_else(|why| {
            let broken = Some(format!("{}: {why}", self.file().display()));
            Ok(PassResult {
                broken,
                ..PassResult::default()
            })
        })
    }
}
