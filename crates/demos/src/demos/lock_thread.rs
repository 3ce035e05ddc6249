//! `lock-thread`: a goroutine locked to its thread, with and without the unlock.

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::machine::thread_id;
use crate::row::Verdict::{Right, Wrong};
use crate::row::{Finding, Rows};
use gosched::{go, runtime, thread};
use std::collections::HashSet;

pub(super) const DEMO: Demo = Demo {
    name: "lock-thread",
    about: "a goroutine that locks itself to its thread and forgets to unlock",
    question: "Goroutines lock themselves to their threads, one after the other, as for a graphics \
        library or a name space. Look at how many different threads they had.",
    size: Size { what: "goroutines", usual: 50, quick: 20, most: 5_000 },
    wants_folder: false,
    columns: &["goroutines", "different_threads", "moved_while_locked"],
    cases: &[
        Case::new(Wrong, FORGOTTEN, |setup| show(setup, false)),
        Case::new(Right, UNLOCKED, |setup| show(setup, true)),
    ],
    explain,
};

const FORGOTTEN: &str = "unlock forgotten";
const UNLOCKED: &str = "unlocked";

/// Locks, waits a few times, and says on which threads it was.
fn locked(unlocks: bool) -> Option<HashSet<String>> {
    runtime::lock_os_thread();
    let seen = (0..3)
        .map(|_| {
            thread::yield_now();
            thread_id()
        })
        .collect();
    if unlocks {
        runtime::unlock_os_thread();
    }
    seen
}

fn show(setup: &Setup, unlocks: bool) -> Result<Figures, String> {
    let (mut threads, mut moved) = (HashSet::new(), 0);
    for _ in 0..setup.size {
        let seen = go(move || locked(unlocks)).join().map_err(|_| "a goroutine panicked")?;
        let seen =
            seen.ok_or("the system does not say which thread this is (/proc/thread-self)")?;
        moved += usize::from(seen.len() != 1);
        threads.extend(seen);
    }
    Ok(Figures::new()
        .set("goroutines", setup.size)
        .set("different_threads", threads.len())
        .set("moved_while_locked", moved as u64))
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let threads = |case| rows.get(case, "different_threads");
    let goroutines = rows.get(FORGOTTEN, "goroutines");
    let moved: u64 =
        [FORGOTTEN, UNLOCKED].map(|case| rows.get(case, "moved_while_locked")).iter().sum();
    vec![
        Finding::of(
            threads(FORGOTTEN) > threads(UNLOCKED),
            format!(
                "A goroutine that ends locked takes its thread along, since nobody knows what it \
                 did to it: {} threads for {goroutines} goroutines, one after the other, against {} \
                 where they unlock. Unlock as often as you lock, on every way out; a guard whose \
                 `Drop` unlocks does.",
                threads(FORGOTTEN),
                threads(UNLOCKED),
            ),
            format!(
                "The forgotten unlock cost no threads in this run ({} and {}).",
                threads(FORGOTTEN),
                threads(UNLOCKED),
            ),
        ),
        Finding::of(
            moved == 0 && goroutines > 0,
            "While it was locked each goroutine stayed on its thread, though it yielded.",
            format!("{moved} goroutines moved while they were locked, which is a defect."),
        ),
    ]
}
