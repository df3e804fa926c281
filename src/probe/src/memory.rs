//! Answers of the disassembler kept in files, so that a changed prober need not ask again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

use crate::nvdisasm::{Class, Printed};

/// What can be kept: one line of text.
pub(crate) trait Answer: Clone {
    fn read(line: &str) -> Option<Self>;
    fn write(&self) -> String;
}

impl Answer for Option<Class> {
    fn read(line: &str) -> Option<Self> {
        if line == "-" {
            Some(None)
        } else {
            u64::from_str_radix(line, 16).ok().map(|c| Some(Class(c)))
        }
    }

    fn write(&self) -> String {
        self.map_or("-".into(), |c| format!("{:x}", c.0))
    }
}

impl Answer for Option<Printed> {
    fn read(line: &str) -> Option<Self> {
        if line == "-" {
            return Some(None);
        }
        let (address, text) = line.split_once(' ')?;
        Some(Some(Printed {
            text: text.into(),
            address: u64::from_str_radix(address, 16).ok()?,
        }))
    }

    fn write(&self) -> String {
        self.as_ref()
            .map_or("-".into(), |p| format!("{:x} {}", p.address, p.text))
    }
}

/// Answers of one kind.
pub(crate) struct Known<T> {
    pub(crate) answers: HashMap<u128, T>,
    file: BufWriter<File>,
}

impl<T: Answer> Known<T> {
    fn open(path: &Path) -> Result<Self> {
        let context = || path.display().to_string();
        let file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .with_context(context)?;
        let mut answers = HashMap::new();
        for line in BufReader::new(&file).lines() {
            let line = line.with_context(context)?;
            let answer = line
                .split_once(' ')
                .and_then(|(w, a)| Some((u128::from_str_radix(w, 16).ok()?, T::read(a)?)));
            answers.extend(answer);
        }
        Ok(Self {
            answers,
            file: BufWriter::new(file),
        })
    }

    pub(crate) fn learn(&mut self, new: impl Iterator<Item = (u128, T)>) -> Result<()> {
        for (word, answer) in new {
            writeln!(self.file, "{word:x} {}", answer.write()).context("cannot keep answers")?;
            self.answers.insert(word, answer);
        }
        self.file.flush().context("cannot keep answers")
    }
}

/// All kept answers.
pub(crate) struct Memory {
    pub(crate) texts: Known<Option<Printed>>,
    pub(crate) classes: Known<Option<Class>>,
}

impl Memory {
    pub(crate) fn open(folder: &Path, arch: &str) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(Self {
            texts: Known::open(&folder.join(format!("{arch}.texts")))?,
            classes: Known::open(&folder.join(format!("{arch}.classes")))?,
        })
    }
}
