//! Files and streams: read with a message that names the file, write atomically, be quiet when a pipe closes.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Reads a whole file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{}: cannot read", path.display()))
}

/// Reads a whole text file.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).with_context(|| format!("{}: not UTF-8 text", path.display()))
}

/// Standard output, whose errors say so.
pub struct Stdout(pub io::BufWriter<io::StdoutLock<'static>>);

fn of_stdout(e: io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("standard output: cannot write: {e}"))
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(of_stdout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(of_stdout)
    }
}

/// Refuses an output that is one of the inputs, also through links.
pub fn refuse_overwrite(output: &Path, inputs: &[&Path]) -> Result<()> {
    let Ok(out) = fs::canonicalize(output) else {
        return Ok(());
    };
    for input in inputs {
        if fs::canonicalize(input).is_ok_and(|i| i == out) || same_file(input, output) {
            bail!("{}: is the input; give another file with -o", output.display());
        }
    }
    Ok(())
}

#[cfg(unix)]
fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => a.dev() == b.dev() && a.ino() == b.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same_file(_: &Path, _: &Path) -> bool {
    false
}

/// Writes a file so that nobody ever sees half of it: a temporary file in the same folder, flushed to the disk, then
/// renamed. The permissions of `like` (the input) are kept, so that an executable stays one. A device or a pipe
/// (`/dev/stdout`, `/dev/null`) is written directly.
pub fn write_atomically(path: &Path, bytes: &[u8], like: Option<&Path>) -> Result<()> {
    if fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        return fs::write(path, bytes).with_context(|| format!("{}: cannot write", path.display()));
    }
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
        _ => PathBuf::from("."),
    };
    if !folder.is_dir() {
        bail!(
            "{}: cannot write: there is no folder {}; make it first",
            path.display(),
            folder.display()
        );
    }
    let write = || -> io::Result<()> {
        // The error would name the temporary file, which says nothing to anyone.
        let nameless = |e: io::Error| io::Error::from(e.kind());
        let mut file = tempfile::Builder::new()
            .prefix(".sass2mlir-")
            .tempfile_in(&folder)
            .map_err(nameless)?;
        file.write_all(bytes)?;
        set_permissions(file.as_file(), like)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    };
    write().with_context(|| format!("{}: cannot write", path.display()))
}

/// Writes a rewritten file as [`write_atomically`] does. Kernels in Mercury form are taken out first if the user asked for it; else
/// the user is told of them, if the file changed.
pub fn write_rewritten(path: &Path, bytes: &[u8], input: &Path, old: &[u8], strip_mercury: bool) -> Result<()> {
    if strip_mercury {
        return write_atomically(path, &engine::mercury::strip(bytes)?, Some(input));
    }
    if bytes != old && engine::mercury::is_in(bytes)? {
        eprintln!("sass2mlir: {}: warning: {}", input.display(), engine::mercury::WARNING);
    }
    write_atomically(path, bytes, Some(input))
}

#[cfg(unix)]
fn set_permissions(file: &fs::File, like: Option<&Path>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = match like.and_then(|p| fs::metadata(p).ok()) {
        // The owner must be able to replace the file later, even when the input was read-only.
        Some(m) => m.permissions().mode() & 0o777 | 0o600,
        None => 0o644,
    };
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_permissions(_: &fs::File, _: Option<&Path>) -> io::Result<()> {
    Ok(())
}

/// Writes a value as JSON, with a line end.
pub fn json(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}

/// A progress bar on the error stream, on a terminal only and only for work worth showing.
pub fn progress(what: &'static str, total: usize, bytes: usize) -> indicatif::ProgressBar {
    const LONG_WORK: usize = 4 << 20;
    if !io::stderr().is_terminal() || bytes < LONG_WORK {
        return indicatif::ProgressBar::hidden();
    }
    let style = indicatif::ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} kernels, {eta} left");
    let bar = indicatif::ProgressBar::new(total as u64).with_message(what);
    bar.set_style(style.unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()));
    bar
}
