//! The processes in which the passes of a library run.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use passes::{Context, Options};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::de::DeserializeOwned;

use super::message::{Answer, Hello, PassInfo, Request};

/// After so many runs that took too long a library is asked no more.
const MAX_LATE: u32 = 3;

/// How long a process that closes its output may take to end (milliseconds).
const GRACE_MS: u32 = 200;

/// How to start the process of a library.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// A program that calls [`serve`](super::serve) with its last argument.
    pub program: PathBuf,
    /// Arguments before that one.
    pub args: Vec<OsString>,
    /// How long a library may take to be loaded, and a pass to look at one kernel.
    pub limit: Duration,
}

/// The processes of a library: one for each run that is going on, used again for the next.
pub struct Workers {
    launcher: Launcher,
    file: PathBuf,
    idle: Mutex<Vec<Worker>>,
    late: AtomicU32,
}

impl Workers {
    /// Starts the first process; gives what the library says of its passes.
    pub fn start(launcher: Launcher, file: &Path) -> Result<(Workers, Vec<PassInfo>), String> {
        let workers = Workers {
            launcher,
            file: file.to_owned(),
            idle: Mutex::default(),
            late: AtomicU32::new(0),
        };
        let (worker, passes) = workers.worker()?;
        workers.idle().push(worker);
        Ok((workers, passes))
    }

    /// Runs a pass, by position. The error says what is wrong with the library.
    pub fn run(&self, at: usize, cx: &Context<'_>, kernel: &ir::Kernel, options: &Options) -> Result<Answer, String> {
        if self.late.load(Ordering::Relaxed) >= MAX_LATE {
            let why = format!("it ran past the time limit on {MAX_LATE} kernels and is asked no more");
            return Err(why);
        }
        let mut line = serde_json::to_vec(&Request::new(at, cx, kernel, options)).map_err(|e| e.to_string())?;
        line.push(b'\n');
        let idle = self.idle().pop();
        let mut worker = match idle {
            Some(worker) => worker,
            None => self.worker()?.0,
        };
        // A process that is gone says why below.
        let _ = worker.input.write_all(&line);
        let answer: Result<Answer, String> = self.hear(&mut worker)?;
        self.idle().push(worker);
        answer
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn worker(&self) -> Result<(Worker, Vec<PassInfo>), String> {
        let mut worker = Worker::spawn(&self.launcher, &self.file)?;
        let hello: Hello = self.hear(&mut worker)?;
        Ok((worker, hello?))
    }

    /// What a process says next. After an error it is of no use any more.
    fn hear<T: DeserializeOwned>(&self, worker: &mut Worker) -> Result<T, String> {
        match worker.output.recv_timeout(self.launcher.limit) {
            Ok(line) => serde_json::from_slice(&line).map_err(|e| format!("its process said something else: {e}")),
            Err(RecvTimeoutError::Timeout) => {
                self.late.fetch_add(1, Ordering::Relaxed);
                Err(format!(
                    "it was stopped after {} seconds, the time limit",
                    self.launcher.limit.as_secs()
                ))
            }
            Err(RecvTimeoutError::Disconnected) => Err(worker.end()),
        }
    }
}

struct Worker {
    child: Child,
    input: ChildStdin,
    /// The lines of its standard output.
    output: Receiver<Vec<u8>>,
}

impl Worker {
    fn spawn(launcher: &Launcher, file: &Path) -> Result<Worker, String> {
        let spawned = Command::new(&launcher.program)
            .args(&launcher.args)
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // With a group of its own, so that what the library starts ends with it.
            .process_group(0)
            .spawn();
        let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", launcher.program.display());
        let mut child = spawned.map_err(|e| failed(&e))?;
        let streams = child.stdin.take().zip(child.stdout.take());
        let (input, out) = streams.ok_or_else(|| failed(&"no standard streams"))?;
        let (sender, output) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(out).split(b'\n').map_while(Result::ok);
            for line in lines {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Worker { child, input, output })
    }

    /// How a process ended that says nothing any more.
    fn end(&mut self) -> String {
        // Who ends closes its output before that shows.
        for _ in 0..GRACE_MS {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(1)),
                Ok(Some(status)) => return format!("its process ended: {status}"),
                Err(e) => return format!("its process ended: {e}"),
            }
        }
        "its process closed its output".to_owned()
    }
}

impl Drop for Worker {
    /// Ends the process and all that it has started.
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
