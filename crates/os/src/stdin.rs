//! Standard input.
//!
//! Reading it is a declared blocking call: making it nonblocking would change it for every process
//! that shares the terminal. So a read takes neither a deadline nor a context, as in std; a program
//! that wants to stop waiting reads in a goroutine of its own and receives from a channel.

use gosched_sched::blocking;
use std::io::{self, BufRead, IoSliceMut, IsTerminal, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// The process's standard input. std's `stdin`.
///
/// ```no_run
/// let mut line = String::new();
/// gosched_os::stdin::stdin().read_line(&mut line)?;
/// # std::io::Result::Ok(())
/// ```
#[must_use]
pub fn stdin() -> Stdin {
    Stdin(std::io::stdin())
}

/// A handle to standard input, with std's buffer. std's `Stdin`.
///
/// A goroutine that reads gives its processor to others until something comes.
#[derive(Debug)]
pub struct Stdin(std::io::Stdin);

impl Stdin {
    /// Keeps others from reading while the guard lives, and gives access to the buffer.
    ///
    /// ```no_run
    /// use std::io::BufRead;
    ///
    /// let mut input = gosched_os::stdin::stdin().lock();
    /// let mut record = Vec::new();
    /// input.read_until(b'\0', &mut record)?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn lock(&self) -> StdinLock {
        StdinLock(blocking(|| self.0.lock()))
    }

    /// Appends the next line; 0 at the end.
    ///
    /// # Errors
    /// What the system answers; a line that is not UTF-8.
    pub fn read_line(&self, line: &mut String) -> io::Result<usize> {
        blocking(|| self.0.read_line(line))
    }

    /// Whether it is a terminal. std's `IsTerminal`, which only std may implement.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.0.is_terminal()
    }

    /// The lines that come, without their ends.
    pub fn lines(self) -> Lines {
        Lines(self)
    }
}

impl Read for &Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        blocking(|| self.0.lock().read(buffer))
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        blocking(|| self.0.lock().read_vectored(buffers))
    }

    fn read_to_end(&mut self, all: &mut Vec<u8>) -> io::Result<usize> {
        blocking(|| self.0.lock().read_to_end(all))
    }

    fn read_to_string(&mut self, all: &mut String) -> io::Result<usize> {
        blocking(|| self.0.lock().read_to_string(all))
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        blocking(|| self.0.lock().read_exact(buffer))
    }
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(buffers)
    }

    fn read_to_end(&mut self, all: &mut Vec<u8>) -> io::Result<usize> {
        (&*self).read_to_end(all)
    }

    fn read_to_string(&mut self, all: &mut String) -> io::Result<usize> {
        (&*self).read_to_string(all)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        (&*self).read_exact(buffer)
    }
}

impl AsFd for Stdin {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Stdin {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Standard input for one reader alone. std's `StdinLock`.
#[derive(Debug)]
#[must_use = "others wait while it lives"]
pub struct StdinLock(std::io::StdinLock<'static>);

impl Read for StdinLock {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        blocking(|| self.0.read(buffer))
    }
}

impl BufRead for StdinLock {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        blocking(|| self.0.fill_buf())
    }

    fn consume(&mut self, bytes: usize) {
        self.0.consume(bytes);
    }
}

/// The iterator of [`Stdin::lines`].
#[derive(Debug)]
#[must_use = "lines are read by iterating"]
pub struct Lines(Stdin);

impl Iterator for Lines {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<io::Result<String>> {
        blocking(|| self.0.0.lock().lines().next())
    }
}
