//! Formatting, and lines that are printed by many and checked by one.

use crate::pulse;
use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Mutex;
use std::thread::JoinHandle;
use testprogs::random::Random;

/// Numbers to text and back.
pub(crate) fn format(random: &mut Random) {
    for _ in 0..random.below(100) {
        let (bits, number) = (random.bits(), random.bits() as f64 / 1e9);
        let text = format!("{bits:>24x} {number:e} {:?}", Some(bits));
        let mut words = text.split_whitespace();
        let hexadecimal = words.next().expect("the first");
        assert_eq!(u64::from_str_radix(hexadecimal, 16), Ok(bits));
        assert_eq!(words.next().and_then(|word| word.parse().ok()), Some(number));
        assert_eq!(words.next(), Some(format!("Some({bits})").as_str()));
    }
}

std::thread_local! {
    /// An actor's number, and its next line's.
    static LINE: Cell<(u64, u64)> = const { Cell::new((u64::MAX, 0)) };
}

/// Actor `i` begins.
pub(crate) fn begin(i: u64) {
    LINE.set((i, 0));
}

/// A goroutine that is no actor, or has no thread-locals of its own, prints unnumbered lines.
pub(crate) fn print(random: &mut Random) {
    for _ in 0..random.below(12) {
        let (actor, line) = if pulse::shares_thread_locals() { (u64::MAX, 0) } else { LINE.get() };
        println!("{actor} {line} {:x} {}", sum(actor, line), "-".repeat(random.below(90) as usize));
        LINE.set((actor, line + 1));
    }
}

fn sum(actor: u64, line: u64) -> u64 {
    (actor ^ line << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Standard output, which now ends at a thread that checks it; and where it went before.
pub(crate) struct Lines {
    out: Mutex<File>,
    reader: Mutex<Option<JoinHandle<u64>>>,
}

/// Redirects standard output.
pub(crate) fn take_stdout() -> Lines {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    // SAFETY: no memory is passed.
    let before = unsafe { libc::dup(1) };
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::dup2(writer.as_raw_fd(), 1) }, 1);
    // SAFETY: a new descriptor of our own.
    let out = Mutex::new(unsafe { File::from_raw_fd(before) });
    let reader = std::thread::spawn(|| check(reader));
    Lines { out, reader: Mutex::new(Some(reader)) }
}

impl Lines {
    /// Prints where standard output went before.
    pub(crate) fn say(&self, line: &str) {
        let mut out = self.out.lock().expect("nobody panics with it");
        writeln!(out, "{line}").expect("standard output is open");
    }

    /// Ends the redirection, when nobody prints any more; how many lines came.
    pub(crate) fn finish(&self) -> u64 {
        std::io::stdout().flush().expect("the reader reads");
        let out = self.out.lock().expect("nobody panics with it");
        // SAFETY: no memory is passed. The pipe's last writer goes.
        assert_eq!(unsafe { libc::dup2(out.as_raw_fd(), 1) }, 1);
        let reader = self.reader.lock().expect("nobody panics with it").take();
        reader.expect("finished once").join().expect("a wrong line ends the process")
    }
}

/// Each line is whole, and each actor's come in their order, none twice and none missing.
fn check(pipe: PipeReader) -> u64 {
    let (mut next, mut count) = (HashMap::new(), 0);
    for line in BufReader::new(pipe).lines() {
        let line = line.expect("text");
        let mut words = line.split(' ');
        let mut number = |radix| u64::from_str_radix(words.next().unwrap_or(""), radix).ok();
        let (actor, this, right) = (number(10), number(10), number(16));
        let (Some(actor), Some(this), Some(right)) = (actor, this, right) else {
            panic!("torn: {line:?}");
        };
        assert_eq!(sum(actor, this), right, "torn: {line:?}");
        assert!(words.all(|rest| rest.bytes().all(|byte| byte == b'-')), "torn: {line:?}");
        if actor != u64::MAX {
            let expected = next.entry(actor).or_insert(0);
            assert_eq!(this, *expected, "lost: {line:?}");
            *expected += 1;
        }
        count += 1;
    }
    count
}
