//! Standard input.
//!
//! Reading it is a declared blocking call: making it nonblocking would change it for every process
//! that shares the terminal.

use gosched_sched::blocking;
use std::io::{self, BufRead, Read};

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
#[derive(Debug)]
pub struct Stdin(std::io::Stdin);

impl Stdin {
    /// Appends the next line; 0 at the end.
    ///
    /// # Errors
    /// What the system answers; a line that is not UTF-8.
    pub fn read_line(&self, line: &mut String) -> io::Result<usize> {
        blocking(|| self.0.read_line(line))
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
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
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
