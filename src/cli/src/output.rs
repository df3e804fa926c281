//! Files and streams: read with a message that names the file, write atomically, be quiet when a pipe closes.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Most bytes that are read from a pipe or a device, which may never end.
const MOST_STREAMED: u64 = 1 << 30;
/// Bytes that tell what a file is.
const HEAD: u64 = 64;

/// Reads a whole file; `-` is standard input.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    read_if(path, |_| Ok(()))
}

/// Reads a file that holds kernels. One that cannot hold any is refused by its first bytes, however large it is.
pub fn read_container(path: &Path) -> Result<Vec<u8>> {
    read_if(path, |head| {
        let kind = cubin::container::Kind::of(head);
        kind.map(drop).with_context(|| path.display().to_string())
    })
}

/// Reads a whole file if its first bytes are right.
fn read_if(path: &Path, right: impl Fn(&[u8]) -> Result<()>) -> Result<Vec<u8>> {
    let failed = || format!("{}: cannot read", path.display());
    match path == Path::new("-") {
        true => read_from(io::stdin().lock(), None, &right).with_context(failed)?,
        false => {
            let file = File::open(path).with_context(failed)?;
            let size = file.metadata().ok().filter(fs::Metadata::is_file).map(|m| m.len());
            read_from(file, size, &right).with_context(failed)?
        }
    }
}

/// Reads to the end of a file of that size, or of a stream.
fn read_from(
    mut from: impl Read,
    size: Option<u64>,
    right: &dyn Fn(&[u8]) -> Result<()>,
) -> io::Result<Result<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.by_ref().take(HEAD).read_to_end(&mut bytes)?;
    if let Err(e) = right(&bytes) {
        return Ok(Err(e));
    }
    bytes.try_reserve_exact(size.unwrap_or(0) as usize)?;
    let most = if size.is_some() { u64::MAX } else { MOST_STREAMED };
    from.by_ref().take(most - HEAD).read_to_end(&mut bytes)?;
    if size.is_none() && bytes.len() as u64 >= most {
        return Err(io::Error::other(format!(
            "more than {MOST_STREAMED} bytes from a pipe or device; save them to a file first"
        )));
    }
    Ok(Ok(bytes))
}

/// Reads a whole text file; `-` is standard input.
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

/// Refuses an output that is one of the files that are read or written besides, also through links.
pub fn keep_apart<'p>(output: Option<&Path>, others: impl IntoIterator<Item = &'p Path>) -> Result<()> {
    let Some(output) = output.filter(|o| !is_stdout(o) && !is_stream(o)) else {
        return Ok(());
    };
    let place = place_of(output);
    for other in others {
        if same_file(other, output) || (place.is_some() && place == place_of(other)) {
            bail!(
                "{}: is the input or another output ({}); give another file",
                output.display(),
                other.display()
            );
        }
    }
    Ok(())
}

/// True for what can be written and read over and over: `/dev/null`, a pipe, a terminal.
fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// True for a name of standard output.
pub fn is_stdout(path: &Path) -> bool {
    ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
        .iter()
        .any(|name| path == Path::new(name))
}

/// Where a file is or will be: its folder without links, and its name.
fn place_of(path: &Path) -> Option<PathBuf> {
    let path = followed(path);
    let folder = fs::canonicalize(folder_of(&path)).ok()?;
    Some(folder.join(path.file_name()?))
}

/// Where a link leads, also if nothing is there yet. A ring of links leads to one of them.
fn followed(path: &Path) -> PathBuf {
    const LONGEST: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..LONGEST {
        let Ok(to) = fs::read_link(&path) else { break };
        path = folder_of(&path).join(to);
    }
    path
}

/// The folder that a file lies in.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
        _ => PathBuf::from("."),
    }
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

/// A file whose bytes are written and which needs only its name: until [`Staged::commit`] what was there before stays.
pub struct Staged {
    path: PathBuf,
    how: How,
}

enum How {
    /// Rename the temporary file to this.
    Rename(tempfile::NamedTempFile, PathBuf),
    /// A device or a pipe takes the bytes at once.
    Stream(Vec<u8>),
    /// So does standard output, which may be a file that has more in it.
    Stdout(Vec<u8>),
}

impl Staged {
    /// Gives the file its name.
    pub fn commit(self) -> Result<()> {
        let done = match self.how {
            How::Rename(file, target) => file.persist(target).map(drop).map_err(|e| e.error),
            How::Stream(bytes) => fs::write(&self.path, bytes),
            How::Stdout(bytes) => io::stdout().write_all(&bytes).and_then(|()| io::stdout().flush()),
        };
        done.with_context(|| format!("{}: cannot write", self.path.display()))
    }
}

/// Writes a temporary file in the folder of `path`, flushed to the disk. The permissions of `like` (the input) are kept, so that an
/// executable stays one. Where `path` is a link, it is the file that it leads to that will be replaced, or made.
pub fn stage(path: &Path, bytes: &[u8], like: Option<&Path>) -> Result<Staged> {
    let staged = |how| Staged {
        path: path.to_path_buf(),
        how,
    };
    if is_stdout(path) {
        return Ok(staged(How::Stdout(bytes.to_vec())));
    }
    if is_stream(path) {
        return Ok(staged(How::Stream(bytes.to_vec())));
    }
    let target = followed(path);
    let folder = folder_of(&target);
    if !folder.is_dir() {
        bail!(
            "{}: cannot write: there is no folder {}; make it first",
            path.display(),
            folder.display()
        );
    }
    // The errors of `tempfile` name the temporary file, which says nothing to anyone.
    let nameless = |e: io::Error| io::Error::from(e.kind());
    let write = || -> io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::Builder::new()
            .prefix(".sass2mlir-")
            .tempfile_in(&folder)
            .map_err(nameless)?;
        file.as_file_mut().write_all(bytes)?;
        set_permissions(file.as_file(), like)?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    let file = write().with_context(|| format!("{}: cannot write", path.display()))?;
    Ok(staged(How::Rename(file, target)))
}

/// Writes a file so that nobody ever sees half of it: see [`stage`]. A device or a pipe (`/dev/stdout`, `/dev/null`) is written directly.
pub fn write_atomically(path: &Path, bytes: &[u8], like: Option<&Path>) -> Result<()> {
    stage(path, bytes, like)?.commit()
}

/// A kernel's name as a file name: what is no letter, digit or one of `._-$` becomes `_`, and names that are longer than file
/// systems allow are cut. Such names are told apart by a hash (FNV-1a).
pub fn file_stem(name: &str) -> String {
    const LONGEST: usize = 200;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-$".contains(c);
    let safe: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    if safe == name && safe.len() <= LONGEST {
        return safe;
    }
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{}-{hash:016x}", &safe[..safe.len().min(LONGEST)])
}

/// Writes a rewritten file as [`write_atomically`] does. Kernels in Mercury form are taken out first if the user asked for it; else
/// the user is told of them, if code beside them changed.
pub fn write_rewritten(path: &Path, bytes: &[u8], input: &Path, old: &[u8], strip_mercury: bool) -> Result<()> {
    if strip_mercury {
        return write_atomically(path, &engine::mercury::strip(bytes)?, Some(input));
    }
    if engine::mercury::is_stale(old, bytes)? {
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

/// The end of a kernel's line, where its register count rose.
pub fn registers(raised: Option<u32>) -> String {
    raised.map_or_else(String::new, |count| format!(", now {count} registers"))
}

/// What is wrong when a kernel is to be replaced that a file holds several times.
pub fn several_images(kernel: &str, target: isa::Target, numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!(
        "holds {kernel} for {target} in images {}; say with --image which is meant",
        numbers.join(", ")
    )
}
