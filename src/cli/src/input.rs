//! The file that a command reads, and the kernels it is about.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use cubin::Code;
use engine::{Images, OpenImage, Opened, Which};
use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::args::Input;
use crate::output;

/// A file and what of it was asked for.
pub struct File {
    path: PathBuf,
    bytes: Vec<u8>,
    which: Which,
    kernels: Option<GlobSet>,
}

impl File {
    /// Reads the file and checks the globs.
    pub fn read(input: &Input) -> Result<File> {
        let mut set = GlobSetBuilder::new();
        for pattern in &input.kernels {
            let glob = Glob::new(pattern).map_err(|e| anyhow!("--kernel {pattern}: bad glob: {}", e.kind()))?;
            set.add(glob);
        }
        let kernels = if input.kernels.is_empty() {
            None
        } else {
            Some(set.build()?)
        };
        Ok(File {
            path: input.file.clone(),
            bytes: output::read_container(&input.file)?,
            which: Which {
                arch: input.arch,
                number: input.image,
            },
            kernels,
        })
    }

    /// The file's name as the user gave it.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True when the kernel was asked for.
    pub fn wants(&self, kernel: &str) -> bool {
        self.kernels.as_ref().is_none_or(|k| k.is_match(kernel))
    }

    /// Finds and decompresses the images of the file.
    pub fn open(&self) -> Result<Opened<'_>> {
        Opened::new(&self.bytes).with_context(|| self.name())
    }

    /// The images for the target asked for, as far as the program knows their instructions. Those that are passed over are
    /// named on the error stream.
    pub fn images<'o>(&self, opened: &'o Opened<'_>) -> Result<Images<'o>> {
        let mut images = opened.images(self.which).with_context(|| self.name())?;
        images.keep_embedded();
        self.checked(images)
    }

    /// The images for the target asked for, whatever it is: for commands that look at no instruction.
    pub fn all_images<'o>(&self, opened: &'o Opened<'_>) -> Result<Images<'o>> {
        self.checked(opened.images(self.which).with_context(|| self.name())?)
    }

    fn checked<'o>(&self, images: Images<'o>) -> Result<Images<'o>> {
        for note in &images.passed_over {
            eprintln!("sass2mlir: {}: note: {note}", self.name());
        }
        if self.kernels.is_some() && self.count(&images) == 0 {
            bail!(
                "{}: no kernel matches --kernel; `sass2mlir info {0}` lists them",
                self.name()
            );
        }
        Ok(images)
    }

    /// How many kernels were asked for.
    pub fn count(&self, images: &Images<'_>) -> usize {
        images
            .list
            .iter()
            .flat_map(|i| i.image.codes())
            .filter(|c| self.wants(c.name))
            .count()
    }

    /// Calls `f` for each image, with the kernels asked for.
    pub fn each_image(
        &self,
        images: &Images<'_>,
        mut f: impl FnMut(&OpenImage<'_>, &[&Code<'_>]) -> Result<()>,
    ) -> Result<()> {
        for open in &images.list {
            let codes: Vec<_> = open.image.codes().iter().filter(|c| self.wants(c.name)).collect();
            f(open, &codes).with_context(|| match open.path {
                "" => self.name(),
                path => format!("{}: {path}", self.name()),
            })?;
        }
        Ok(())
    }
}
