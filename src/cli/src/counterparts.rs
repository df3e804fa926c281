//! The kernels of one file beside those of another.

use std::collections::{HashMap, VecDeque};

use anyhow::{Result, bail};
use cubin::{Code, Image};
use isa::Target;

use crate::input::File;

/// The kernels of the other file. A file may hold a kernel of one name several times: they are paired in file order.
pub struct Counterparts<'i> {
    waiting: HashMap<(Target, String), VecDeque<(&'i Image<'i>, &'i Code<'i>)>>,
}

impl<'i> Counterparts<'i> {
    /// Those that `counts` says are to have a partner.
    pub fn new(images: &'i engine::Images<'_>, counts: impl Fn(&Code<'_>) -> bool) -> Self {
        let mut waiting: HashMap<_, VecDeque<_>> = HashMap::new();
        for image in images.list.iter().map(|i| &i.image) {
            for code in image.codes().iter().filter(|c| counts(c)) {
                let key = (image.target(), code.name.to_owned());
                waiting.entry(key).or_default().push_back((image, code));
            }
        }
        Self { waiting }
    }

    /// The next of that name.
    pub fn next(&mut self, target: Target, name: &str) -> Option<(&'i Image<'i>, &'i Code<'i>)> {
        self.waiting.get_mut(&(target, name.to_owned()))?.pop_front()
    }

    /// An error if a kernel of `after` that `before` asks for has had no partner.
    pub fn all_met(&self, before: &File, after: &File) -> Result<()> {
        let alone = self
            .waiting
            .iter()
            .filter(|((_, name), kernels)| !kernels.is_empty() && before.wants(name));
        match alone.map(|(key, _)| key).min() {
            None => Ok(()),
            Some((target, name)) => bail!(
                "{}: no kernel `{name}` for {target}, which {} has",
                before.name(),
                after.name()
            ),
        }
    }
}
