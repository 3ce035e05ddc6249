//! Child processes, in the shape of `std::process`: a goroutine that waits for one costs no thread.
//!
//! std's own [`Command`](std::process::Command) works in goroutines as well; its `wait` and `output`
//! hold a thread meanwhile.
//!
//! A child's end is told by a process descriptor (Linux 5.3), its pipes are nonblocking on our side
//! only. Where a process descriptor can't be had the wait is a declared blocking call.

mod pipe;

use gosched_net::{Direction, Pollable};
use gosched_sched::blocking;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

pub use pipe::{ChildStderr, ChildStdin, ChildStdout};
pub use std::process::{
    CommandArgs, CommandEnvs, ExitCode, ExitStatus, Output, Stdio, Termination, abort, exit, id,
};

/// How a child process is to be started. std's `Command`.
///
/// ```
/// use gosched_os::process::Command;
///
/// gosched_sched::run(|| {
///     let output = Command::new("echo").arg("hello").output().unwrap();
///     assert!(output.status.success());
///     assert_eq!(output.stdout, b"hello\n");
/// });
/// ```
pub struct Command {
    inner: std::process::Command,
    /// Whether the user has said what standard input, output and error are to be.
    chosen: [bool; 3],
}

/// Settings that are std's.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident<$($kind:ident: $bound:ident),*>($($arg:ident: $type:ty),*);)*) => {
        $(
            $(#[$doc])*
            pub fn $name<$($kind: AsRef<$bound>),*>(&mut self, $($arg: $type),*) -> &mut Command {
                self.inner.$name($($arg),*);
                self
            }
        )*
    };
}

impl Command {
    /// Of this program, looked for in `PATH`.
    pub fn new<S: AsRef<OsStr>>(program: S) -> Command {
        Command::from(std::process::Command::new(program))
    }

    settings! {
        /// One more argument.
        arg<S: OsStr>(argument: S);
        /// A variable of its environment.
        env<K: OsStr, V: OsStr>(key: K, value: V);
        /// Takes a variable out of its environment.
        env_remove<K: OsStr>(key: K);
        /// An empty environment.
        env_clear<>();
        /// The directory that it starts in.
        current_dir<P: Path>(directory: P);
    }

    /// More arguments.
    pub fn args<I, S>(&mut self, arguments: I) -> &mut Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.inner.args(arguments);
        self
    }

    /// Variables of its environment.
    pub fn envs<I, K, V>(&mut self, variables: I) -> &mut Command
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.inner.envs(variables);
        self
    }

    /// Its standard input.
    pub fn stdin<T: Into<Stdio>>(&mut self, stdin: T) -> &mut Command {
        self.chosen[0] = true;
        self.inner.stdin(stdin);
        self
    }

    /// Its standard output.
    pub fn stdout<T: Into<Stdio>>(&mut self, stdout: T) -> &mut Command {
        self.chosen[1] = true;
        self.inner.stdout(stdout);
        self
    }

    /// Its standard error.
    pub fn stderr<T: Into<Stdio>>(&mut self, stderr: T) -> &mut Command {
        self.chosen[2] = true;
        self.inner.stderr(stderr);
        self
    }

    /// std's command, for settings that have no method here.
    pub fn as_std_mut(&mut self) -> &mut std::process::Command {
        &mut self.inner
    }

    /// Starts it.
    ///
    /// # Errors
    /// What the system answers.
    pub fn spawn(&mut self) -> io::Result<Child> {
        blocking(|| self.inner.spawn()).map(Child::from)
    }

    /// Starts it and waits for its end.
    ///
    /// # Errors
    /// What the system answers.
    pub fn status(&mut self) -> io::Result<ExitStatus> {
        self.spawn()?.wait()
    }

    /// Starts it and waits for its end and all it has printed. What the caller hasn't chosen is as
    /// with std's: no input, output and error kept.
    ///
    /// # Errors
    /// What the system answers.
    pub fn output(&mut self) -> io::Result<Output> {
        if !self.chosen[0] {
            self.inner.stdin(Stdio::null());
        }
        if !self.chosen[1] {
            self.inner.stdout(Stdio::piped());
        }
        if !self.chosen[2] {
            self.inner.stderr(Stdio::piped());
        }
        self.spawn()?.wait_with_output()
    }
}

impl From<std::process::Command> for Command {
    /// What it says of standard input, output and error is kept by `spawn`, not by `output`.
    fn from(inner: std::process::Command) -> Command {
        Command { inner, chosen: [false; 3] }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// A child process. std's `Child`: dropping it leaves the process alone.
#[derive(Debug)]
pub struct Child {
    /// Where its standard input is written to, if that is a pipe.
    pub stdin: Option<ChildStdin>,
    /// Where its standard output is read from, if that is a pipe.
    pub stdout: Option<ChildStdout>,
    /// Where its standard error is read from, if that is a pipe.
    pub stderr: Option<ChildStderr>,
    inner: std::process::Child,
    /// Readable once it has ended; made by the first wait.
    end: Option<Pollable<OwnedFd>>,
}

impl From<std::process::Child> for Child {
    fn from(mut inner: std::process::Child) -> Child {
        Child {
            stdin: inner.stdin.take().map(ChildStdin::from),
            stdout: inner.stdout.take().map(ChildStdout::from),
            stderr: inner.stderr.take().map(ChildStderr::from),
            inner,
            end: None,
        }
    }
}

impl Child {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner.id()
    }

    /// Ends it by SIGKILL.
    ///
    /// # Errors
    /// What the system answers.
    pub fn kill(&mut self) -> io::Result<()> {
        self.inner.kill()
    }

    /// How it has ended, if it has.
    ///
    /// # Errors
    /// What the system answers.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.inner.try_wait()
    }

    /// Waits for its end; its standard input is closed first.
    ///
    /// # Errors
    /// What the system answers.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        if let Some(status) = self.inner.try_wait()? {
            return Ok(status);
        }
        if self.end.is_none() {
            self.end = open_process(self.inner.id()).ok().map(Pollable::new);
        }
        let Some(end) = &self.end else { return blocking(|| self.inner.wait()) };
        let inner = &mut self.inner;
        end.call(Direction::Read, |_| match inner.try_wait() {
            Ok(Some(status)) => Ok(status),
            Ok(None) => Err(ErrorKind::WouldBlock.into()),
            Err(error) => Err(error),
        })
    }

    /// Waits for its end and for all it has printed; its standard input is closed first.
    ///
    /// # Errors
    /// What the system answers.
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        match (self.stdout.take(), self.stderr.take()) {
            (None, None) => {}
            (Some(mut out), None) => drop(out.read_to_end(&mut stdout)?),
            (None, Some(mut error)) => drop(error.read_to_end(&mut stderr)?),
            (Some(out), Some(error)) => pipe::read_both(out, &mut stdout, error, &mut stderr)?,
        }
        let status = self.wait()?;
        Ok(Output { status, stdout, stderr })
    }
}

fn open_process(id: u32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed. The number is a child's that was not waited for, so it is no
    // other process's.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, id as libc::c_long, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just opened for us; it is closed at an exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
