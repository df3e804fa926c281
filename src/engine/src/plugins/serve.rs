//! The process of a library: loads it and answers until nobody asks any more.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use isa::Isa;
use passes::Context;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group, kill_process};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use serde::Serialize;

use super::library::Library;
use super::message::{Answer, Hello, Request};

/// Runs the passes of a library as standard input asks, until that ends.
pub fn serve(file: &Path) -> io::Result<()> {
    let (input, mut output) = own_streams()?;
    let requests = listen(input);
    let library = Library::open(file);
    let hello: Hello = library.as_ref().map_err(Clone::clone).and_then(Library::passes);
    send(&mut output, &hello)?;
    let Ok(library) = library else { return Ok(()) };
    for request in requests {
        let request: Request = serde_json::from_str(&request)?;
        send(&mut output, &answer(&library, &request))?;
    }
    Ok(())
}

fn answer(library: &Library, request: &Request) -> Result<Answer, String> {
    let kernel = request.kernel()?;
    let cx = Context {
        isa: Isa::for_target(kernel.target).map_err(|e| e.to_string())?,
        params: request.params,
        pinned: &request.pinned,
        resources: &request.resources(),
    };
    library.run(request.pass, &cx, &kernel, &request.options())
}

/// Standard input and output for this module alone: what the library prints goes to standard error, and what it reads is empty.
fn own_streams() -> io::Result<(File, File)> {
    let input = fcntl_dupfd_cloexec(io::stdin(), 3)?;
    let output = fcntl_dupfd_cloexec(io::stdout(), 3)?;
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(io::stderr())?;
    Ok((input.into(), output.into()))
}

/// Hands out what is asked. When nobody can ask any more the process ends at once, also in the middle of an endless loop.
fn listen(input: File) -> Receiver<String> {
    let (sender, receiver) = sync_channel(0);
    thread::spawn(move || {
        let lines = BufReader::new(input).lines().map_while(Result::ok);
        for line in lines {
            if sender.send(line).is_err() {
                return;
            }
        }
        end_all();
    });
    receiver
}

/// Ends this process, and where it leads a group what the library has started too.
fn end_all() {
    let _ = match getpgrp() == getpid() {
        true => kill_current_process_group(Signal::KILL),
        false => kill_process(getpid(), Signal::KILL),
    };
}

fn send(output: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    output.write_all(&line)
}
