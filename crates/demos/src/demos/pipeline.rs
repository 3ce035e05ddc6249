//! `pipeline DIR`: find, read, count words, merge.
//!
//! Stages joined by channels, each of the size that suits it. Finding is one goroutine. Reading
//! waits for the disk, so there are more readers than processors; a read is a declared call, and
//! stops nobody else. Counting computes, so there are as many counters as processors and no more.
//! Bounded channels keep a fast stage from filling the memory in front of a slow one.

mod words;

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::machine;
use crate::row::Verdict::{Plain, Right, Wrong};
use crate::row::{Finding, Rows};
use crate::text::{bytes, count, time};
use gosched::channel::{Receiver, Sender, bounded, unbounded};
use gosched::sync::Arc;
use gosched::{blocking, go, runtime};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use std::{fs, io};
use words::Totals;

pub(super) const DEMO: Demo = Demo {
    name: "pipeline",
    about: "count the words of a folder: stages with bounds, or everything at once",
    question: "All files below a folder are found, read, counted and merged. The totals are those of \
        `LC_ALL=C wc`. Look at the time, and at how much was in memory at once.",
    size: Size { what: "readers", usual: 16, quick: 16, most: 1_000 },
    wants_folder: true,
    columns: &["files", "lines", "words", "bytes", "took_ns", "most_held_bytes"],
    cases: &[
        Case::new(Plain, ONE, |setup| measured(setup, one_by_one)),
        Case::new(Wrong, ALL, |setup| measured(setup, all_at_once)),
        Case::new(Right, STAGES, |setup| measured(setup, stages)),
    ],
    explain,
};

const ONE: &str = "one file after the other";
const ALL: &str = "a goroutine for each file";
const STAGES: &str = "stages with bounds";
/// Files that are read and not counted yet.
const READ_AHEAD: usize = 8;

/// A file's text, counted while it lives.
struct Text {
    bytes: Vec<u8>,
    held: Arc<Held>,
}

/// Bytes of texts that are there, now and at most.
#[derive(Default)]
struct Held {
    now: AtomicU64,
    most: AtomicU64,
}

impl Text {
    fn read(path: &Path, held: &Arc<Held>) -> io::Result<Text> {
        let bytes = blocking(|| fs::read(path))?;
        let len = bytes.len() as u64;
        held.most.fetch_max(held.now.fetch_add(len, Relaxed) + len, Relaxed);
        Ok(Text { bytes, held: held.clone() })
    }

    fn count(&self) -> Totals {
        words::count(&self.bytes)
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        self.held.now.fetch_sub(self.bytes.len() as u64, Relaxed);
    }
}

type Count = fn(&Setup, PathBuf, &Arc<Held>) -> io::Result<Totals>;

fn measured(setup: &Setup, count: Count) -> Result<Figures, String> {
    let folder = setup.folder.clone().ok_or("which folder?")?;
    let shown = folder.display().to_string();
    let (held, start) = (Arc::new(Held::default()), Instant::now());
    let totals = count(setup, folder, &held).map_err(|error| format!("{shown}: {error}"))?;
    Ok(Figures::new()
        .set("files", totals.files)
        .set("lines", totals.lines)
        .set("words", totals.words)
        .set("bytes", totals.bytes)
        .set("took_ns", start.elapsed().as_nanos())
        .set("most_held_bytes", held.most.load(Relaxed)))
}

/// Gives every regular file below `folder` to `found`, until that says no. Links are not followed.
fn find(folder: &Path, found: &mut dyn FnMut(PathBuf) -> bool) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let goes_on = match () {
            () if kind.is_dir() => find(&entry.path(), found)?,
            () if kind.is_file() => found(entry.path()),
            () => true,
        };
        if !goes_on {
            return Ok(false);
        }
    }
    Ok(true)
}

fn one_by_one(_: &Setup, folder: PathBuf, held: &Arc<Held>) -> io::Result<Totals> {
    let (mut sum, mut failed) = (Totals::default(), None);
    find(&folder, &mut |path| match Text::read(&path, held) {
        Ok(text) => {
            sum = sum + text.count();
            true
        }
        Err(error) => {
            failed = Some(error);
            false
        }
    })?;
    failed.map_or(Ok(sum), Err)
}

/// All of the files at once, that is.
fn fits_into_memory(folder: &Path) -> io::Result<()> {
    let (mut all, room) = (0, machine::available_bytes() / 2);
    find(folder, &mut |path| {
        all += fs::metadata(path).map_or(0, |file| file.len());
        true
    })?;
    if all <= room {
        return Ok(());
    }
    let (all, room) = (bytes(all), bytes(room));
    Err(io::Error::other(format!(
        "the files have {all}, and this case holds all of them in memory, where {room} may be used; \
         choose a smaller folder"
    )))
}

/// Reads all of them as fast as it can, however few are counted meanwhile.
fn all_at_once(_: &Setup, folder: PathBuf, held: &Arc<Held>) -> io::Result<Totals> {
    let (texts, arrived) = unbounded();
    fits_into_memory(&folder)?;
    find(&folder, &mut |path| {
        let (texts, held) = (texts.clone(), held.clone());
        go(move || _ = texts.send(Text::read(&path, &held)));
        true
    })?;
    drop(texts);
    let texts = arrived.iter().collect::<io::Result<Vec<Text>>>()?;
    let counts: Vec<_> = texts.into_iter().map(|text| go(move || text.count())).collect();
    counts.into_iter().try_fold(Totals::default(), |sum, counted| {
        Ok(sum + counted.join().map_err(|_| io::Error::other("a goroutine panicked"))?)
    })
}

/// Counts all files below `folder`, or says what went wrong first.
fn stages(setup: &Setup, folder: PathBuf, held: &Arc<Held>) -> io::Result<Totals> {
    let readers = setup.size as usize;
    let paths = stage(1, readers, |paths| {
        let folder = folder.clone();
        move || {
            let found = find(&folder, &mut |path| paths.send(Ok(path)).is_ok());
            if let Err(error) = found {
                let _ = paths.send(Err(error));
            }
        }
    });
    let texts = stage(readers, READ_AHEAD, |texts| {
        let (paths, held) = (paths.clone(), held.clone());
        move || {
            for path in paths {
                let text = path.and_then(|path: PathBuf| Text::read(&path, &held));
                if texts.send(text).is_err() {
                    // Nobody counts any more.
                    return;
                }
            }
        }
    });
    let counted = stage(runtime::gomaxprocs(0), READ_AHEAD, |counted| {
        let texts = texts.clone();
        move || {
            for text in texts {
                if counted.send(text.map(|text| text.count())).is_err() {
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

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let get = |case, figure| rows.get(case, figure);
    let same =
        |figure| get(ALL, figure) == get(ONE, figure) && get(STAGES, figure) == get(ONE, figure);
    let held = |case| get(case, "most_held_bytes");
    let took = |case| time(get(case, "took_ns"));
    vec![
        Finding::of(
            ["files", "lines", "words", "bytes"].into_iter().all(same),
            format!(
                "All came to {} lines, {} words and {} bytes in {} files. Compare: find DIR -type f \
                 -exec cat {{}} + | LC_ALL=C wc (where files end without a newline, word counts \
                 of `cat` differ).",
                get(ONE, "lines"),
                get(ONE, "words"),
                get(ONE, "bytes"),
                get(ONE, "files"),
            ),
            "The ways came to different totals: the folder changed meanwhile.",
        ),
        Finding::of(
            held(ALL) > held(STAGES),
            format!(
                "A goroutine for each file costs little; what it has read does not: {} were in \
                 memory at once, against {} with bounds between the stages, whatever the size of \
                 the folder.",
                bytes(held(ALL)),
                bytes(held(STAGES)),
            ),
            format!(
                "At most {} and {} were in memory at once: there are too few files here for bounds \
                 to matter.",
                bytes(held(ALL)),
                bytes(held(STAGES)),
            ),
        ),
        Finding::of(
            get(STAGES, "took_ns") < get(ONE, "took_ns"),
            format!(
                "The stages took {}, one file after the other {} ({} files).",
                took(STAGES),
                took(ONE),
                count(get(ONE, "files")),
            ),
            format!(
                "The stages took {} and one file after the other {}: with few files, or all of them \
                 in the kernel's cache and one CPU, there is nothing to do at the same time.",
                took(STAGES),
                took(ONE),
            ),
        ),
    ]
}
