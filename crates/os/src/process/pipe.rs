//! Our ends of the pipes to a child.

use gosched_net::{Direction, Pollable};
use gosched_sched::{SpawnOptions, spawn};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::Location;
use std::process::Stdio;

/// Makes one end of a pipe nonblocking; the child's end is another one and stays as it is.
fn nonblocking<T: AsRawFd>(file: T) -> T {
    // SAFETY: no memory is passed.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    if flags >= 0 {
        // SAFETY: no memory is passed. It doesn't fail for an open pipe; one that blocked would
        // hold a thread, no more.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) };
    }
    file
}

fn blocking_again(file: OwnedFd) -> OwnedFd {
    // SAFETY: no memory is passed.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    if flags >= 0 {
        // SAFETY: no memory is passed; as above.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) };
    }
    file
}

macro_rules! end_of_pipe {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub struct $name {
            io: Pollable<std::process::$name>,
        }

        impl From<std::process::$name> for $name {
            fn from(pipe: std::process::$name) -> $name {
                $name { io: Pollable::new(nonblocking(pipe)) }
            }
        }

        /// The end blocks again.
        impl From<$name> for OwnedFd {
            fn from(pipe: $name) -> OwnedFd {
                blocking_again(pipe.io.into_inner().into())
            }
        }

        /// For another child.
        impl From<$name> for Stdio {
            fn from(pipe: $name) -> Stdio {
                OwnedFd::from(pipe).into()
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.io.get_ref().as_fd()
            }
        }

        impl AsRawFd for $name {
            fn as_raw_fd(&self) -> RawFd {
                self.io.get_ref().as_raw_fd()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.io.fmt(f)
            }
        }
    };
}

end_of_pipe! {
    /// Where a child's standard input is written to. std's `ChildStdin`.
    ChildStdin
}
end_of_pipe! {
    /// Where a child's standard output is read from. std's `ChildStdout`.
    ChildStdout
}
end_of_pipe! {
    /// Where a child's standard error is read from. std's `ChildStderr`.
    ChildStderr
}

impl Write for &ChildStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.io.call(Direction::Write, |mut file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for ChildStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// std's reading ends read by `&mut` only; the descriptor does it by `&`.
fn read_from(file: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `len` bytes to the buffer.
    let n = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

impl Read for ChildStdout {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.call(Direction::Read, |file| read_from(file, buffer))
    }
}

impl Read for ChildStderr {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.call(Direction::Read, |file| read_from(file, buffer))
    }
}

fn sendable<F: FnOnce() -> T + Send + 'static, T: Send + 'static>(f: F) -> F {
    f
}

/// Reads both to their ends at once, so that the child waits for neither: the second one in a
/// goroutine of its own.
pub(super) fn read_both(
    mut out: ChildStdout,
    stdout: &mut Vec<u8>,
    mut error: ChildStderr,
    stderr: &mut Vec<u8>,
) -> io::Result<()> {
    let read_error = move || {
        let mut all = Vec::new();
        error.read_to_end(&mut all).map(|_| all)
    };
    let site = Location::caller();
    // SAFETY: the closure borrows nothing, and it and its result are `Send` (checked below).
    let helper = unsafe { spawn(sendable(read_error), SpawnOptions::default(), site) };
    let helper = helper.map_err(io::Error::other)?;
    out.read_to_end(stdout)?;
    *stderr = helper.join().unwrap_or_else(|_| Err(ErrorKind::Other.into()))?;
    Ok(())
}
