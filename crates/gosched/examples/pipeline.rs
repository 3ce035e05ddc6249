//! A pipeline over the files of a directory: find, read, count, merge.
//!
//! Four stages joined by channels, each of the size that suits it. Finding is one goroutine. Reading
//! waits for the disk, so there are more readers than processors; a read is a declared call, and
//! stops nobody else. Counting computes, so there are as many counters as processors and no more.
//! Bounded channels keep a fast stage from filling the memory in front of a slow one.
//!
//! The totals are those of `LC_ALL=C wc`.
//!
//! `cargo run --release --example pipeline DIR`

use gosched::channel::{Receiver, Sender, bounded};
use gosched::{blocking, go, run, runtime};
use std::ops::Add;
use std::path::{Path, PathBuf};
use std::{env, fmt, fs, io, process};

const READERS: usize = 16;
/// Files that are read and not counted yet: a bound for the memory.
const READ_AHEAD: usize = 8;

/// What `wc` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) files: u64,
    pub(crate) lines: u64,
    pub(crate) words: u64,
    pub(crate) bytes: u64,
}

impl Add for Totals {
    type Output = Totals;

    fn add(self, other: Totals) -> Totals {
        Totals {
            files: self.files + other.files,
            lines: self.lines + other.lines,
            words: self.words + other.words,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { files, lines, words, bytes } = self;
        write!(f, "{lines} lines, {words} words, {bytes} bytes in {files} files")
    }
}

/// A word begins with a printable character and ends with a blank, as in `wc`'s C locale.
fn count(text: &[u8]) -> Totals {
    let (mut lines, mut words, mut in_word) = (0, 0, false);
    for &byte in text {
        lines += u64::from(byte == b'\n');
        if byte.is_ascii_whitespace() || byte == b'\x0b' {
            in_word = false;
        } else if byte.is_ascii_graphic() && !in_word {
            in_word = true;
            words += 1;
        }
    }
    Totals { files: 1, lines, words, bytes: text.len() as u64 }
}

/// Sends every regular file below `folder`. Links are not followed.
fn find(folder: &Path, paths: &Sender<io::Result<PathBuf>>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            find(&entry.path(), paths)?;
        } else if kind.is_file() && paths.send(Ok(entry.path())).is_err() {
            // Nobody counts any more.
            break;
        }
    }
    Ok(())
}

/// Counts all files below `folder`, or says what went wrong first.
pub(crate) fn count_all(folder: PathBuf) -> io::Result<Totals> {
    let paths = stage(1, READERS, |paths| {
        let folder = folder.clone();
        move || {
            if let Err(error) = find(&folder, &paths) {
                let _ = paths.send(Err(error));
            }
        }
    });
    let texts = stage(READERS, READ_AHEAD, |texts| {
        let paths = paths.clone();
        move || {
            for path in paths {
                let text = path.and_then(|path| blocking(|| fs::read(path)));
                if texts.send(text).is_err() {
                    return;
                }
            }
        }
    });
    let counted = stage(runtime::gomaxprocs(0), READ_AHEAD, |counted| {
        let texts = texts.clone();
        move || {
            for text in texts {
                if counted.send(text.map(|text| count(&text))).is_err() {
                    return;
                }
            }
        }
    });
    // What is left of this function's ends would keep the stages going after an error.
    drop((paths, texts));
    counted.iter().try_fold(Totals::default(), |sum, totals| Ok(sum + totals?))
}

/// Starts `workers` goroutines that send to one channel, which closes when all have ended.
fn stage<T, W>(
    workers: usize,
    ahead: usize,
    worker: impl Fn(Sender<io::Result<T>>) -> W,
) -> Receiver<io::Result<T>>
where
    T: Send + 'static,
    W: FnOnce() + Send + 'static,
{
    let (sender, receiver) = bounded(ahead);
    for _ in 0..workers {
        go(worker(sender.clone()));
    }
    receiver
}

fn main() {
    let Some(folder) = env::args_os().nth(1) else {
        eprintln!("usage: pipeline DIR");
        process::exit(2);
    };
    match run(move || count_all(folder.into())) {
        Ok(totals) => println!("{totals}"),
        Err(error) => {
            eprintln!("pipeline: {error}");
            process::exit(1);
        }
    }
}
