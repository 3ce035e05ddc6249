//! Runs one command: its output is shown as it comes, and a hang ends when its time is over.
//!
//! Invariants
//! * I1. The command and its children share one pipe for output and errors, so lines stay in the
//!   order in which they were written.
//! * I2. When `run` returns, no process that the command started is left.
//!
//! What belongs to a command is found by two marks: descent from it, and a variable in the
//! environment that children inherit. Descent misses a child whose parent has died; the variable
//! misses a child started with an empty environment.
//!
//! Rejected: a process group for each command. A child can leave it, and Ctrl-C at the terminal
//! would no longer reach it.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, PipeReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, process};

use rustix::process::{Pid, Signal, kill_process};

/// The variable that marks the processes of a command.
const MARK: &str = "XTASK_COMMAND";

/// How long output may stay open, and processes may still be about to end, after the command itself
/// has ended. Where CPUs are short one that was killed needs a while to go.
const GRACE: Duration = Duration::from_secs(10);

/// A command to run, with what differs from our own environment.
#[derive(Clone)]
pub(crate) struct Task {
    argv: Vec<String>,
    variables: Vec<(String, String)>,
    grace: Duration,
}

/// Whether a line of output is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shown {
    Yes,
    No,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// By itself.
    Exited(ExitStatus),
    /// Killed, since it ran past its deadline.
    TimedOut,
    /// By itself, but processes that it had started were still running and were killed.
    LeftProcesses(usize),
}

impl Task {
    pub(crate) fn new(program: impl Into<String>) -> Task {
        Task { argv: vec![program.into()], variables: Vec::new(), grace: GRACE }
    }

    pub(crate) fn args<S: AsRef<str>>(mut self, args: impl IntoIterator<Item = S>) -> Task {
        self.argv.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Task {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The command as one would type it.
    pub(crate) fn shown(&self) -> String {
        let quote = |word: &str| if word.contains(' ') { format!("'{word}'") } else { word.into() };
        let mut words: Vec<String> =
            self.variables.iter().map(|(name, value)| format!("{name}={}", quote(value))).collect();
        let program = Path::new(&self.argv[0]).file_name().unwrap_or_default();
        words.push(program.display().to_string());
        words.extend(self.argv[1..].iter().map(|word| quote(word)));
        words.join(" ")
    }

    /// Runs to the end or to `deadline`. `on_line` sees each line of output as it comes and says
    /// whether to show it.
    pub(crate) fn run(
        &self,
        folder: &Path,
        deadline: Instant,
        mut on_line: impl FnMut(&str) -> Shown,
    ) -> io::Result<Ended> {
        println!("$ {}", self.shown());
        let mark = new_mark();
        let (reader, writer) = io::pipe()?;
        let mut command = self.command(folder, &mark);
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn()?;
        // The command holds the pipe's writing end, and the end of output is its last close.
        drop(command);
        let (sender, lines) = mpsc::channel();
        let copier = thread::spawn(move || copy_lines(reader, &sender));
        let ended = self.watch(&mut child, &mark, deadline, &lines, &mut on_line)?;
        let _ = copier.join();
        Ok(ended)
    }

    /// The whole output when the command succeeds, without showing anything.
    pub(crate) fn quiet_output(&self, folder: &Path) -> Result<String, String> {
        let output = self.command(folder, "").stdin(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(errors.lines().next().unwrap_or("it failed without a message").to_owned())
        }
    }

    /// Hands lines on until the output closes; ends what is left when time is over.
    fn watch(
        &self,
        child: &mut Child,
        mark: &str,
        deadline: Instant,
        lines: &Receiver<String>,
        on_line: &mut impl FnMut(&str) -> Shown,
    ) -> io::Result<Ended> {
        let mut exited_at = None;
        let mut timed_out = false;
        // Each once: one that was killed may take a while to go.
        let mut left = HashSet::new();
        loop {
            match lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => {
                    if on_line(&line) == Shown::Yes {
                        println!("{line}");
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if exited_at.is_none() => {
                    exited_at = child.try_wait()?.map(|_| Instant::now());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if exited_at.is_some_and(|at: Instant| at.elapsed() > self.grace) {
                left.extend(end_all(child.id(), mark));
            } else if Instant::now() >= deadline {
                timed_out = true;
                end_all(child.id(), mark);
            }
        }
        // Output is closed; the command itself may still run.
        while child.try_wait()?.is_none() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        if child.try_wait()?.is_none() {
            timed_out = true;
        } else {
            let grace = Instant::now() + self.grace;
            while !processes_of(child.id(), mark).is_empty() && Instant::now() < grace {
                thread::sleep(Duration::from_millis(10));
            }
        }
        left.extend(end_all(child.id(), mark));
        let status = child.wait()?;
        Ok(match (timed_out, left.len()) {
            (true, _) => Ended::TimedOut,
            (false, 0) => Ended::Exited(status),
            (false, count) => Ended::LeftProcesses(count),
        })
    }

    fn command(&self, folder: &Path, mark: &str) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).current_dir(folder).env(MARK, mark);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        // Set by `cargo run` for us; to a test they would tell of the wrong crate.
        command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
        command
    }
}

/// Cuts output into lines; the last one may lack its end.
fn copy_lines(reader: PipeReader, lines: &Sender<String>) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while let Ok(1..) = reader.read_until(b'\n', &mut line) {
        let _ = lines.send(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
}

fn new_mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // ORDERING: only the number has to be new; nothing is published with it.
    format!("{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Kills the processes of a command until none is found; returns which there were.
fn end_all(root: u32, mark: &str) -> HashSet<u32> {
    let mut ended = HashSet::new();
    // Bounded, since a process in an uninterruptible call outlives its killing.
    for _ in 0..100 {
        let alive = processes_of(root, mark);
        if alive.is_empty() {
            break;
        }
        for pid in alive {
            ended.insert(pid);
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    ended
}

/// The living processes that are `root`, descend from it, or carry the mark.
fn processes_of(root: u32, mark: &str) -> Vec<u32> {
    let all: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, parent_if_alive(pid)?)))
        .collect();
    let mut ours: HashSet<u32> = HashSet::from([root]);
    loop {
        let before = ours.len();
        ours.extend(
            all.iter()
                .filter(|(_, parent)| ours.contains(parent))
                .map(|(pid, _)| *pid)
                .collect::<Vec<_>>(),
        );
        if ours.len() == before {
            break;
        }
    }
    let wanted = format!("{MARK}={mark}");
    let marked = |pid: u32, parent: u32| {
        let environment = environment_of(pid, pid > root && parent != KERNEL_THREADS);
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let found = all.into_iter().filter(|(pid, parent)| ours.contains(pid) || marked(*pid, *parent));
    found.map(|(pid, _)| pid).collect()
}

/// The parent of the kernel's threads.
const KERNEL_THREADS: u32 = 2;

/// The environment of a process. One that may have been started just now is looked at again while
/// it seems to have none: so it is while it becomes another program.
fn environment_of(pid: u32, may_be_new: bool) -> Vec<u8> {
    let path = format!("/proc/{pid}/environ");
    for _ in 0..100 {
        match fs::read(&path) {
            Ok(empty) if empty.is_empty() && may_be_new && parent_if_alive(pid).is_some() => {
                thread::sleep(Duration::from_millis(1));
            }
            // Another user's can't be read.
            result => return result.unwrap_or_default(),
        }
    }
    Vec::new()
}

/// The parent of a process that is not a zombie.
fn parent_if_alive(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so the fields are counted from the last one.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z" && state != "X").then_some(parent)
}

#[cfg(test)]
mod tests;
