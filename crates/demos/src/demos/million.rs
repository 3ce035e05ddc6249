//! `million`: a million goroutines that wait, and what threads would cost.

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::machine;
use crate::row::Verdict::{Right, Wrong};
use crate::row::{Finding, Rows};
use crate::text::{bytes, count, time};
use gosched::sync::{Arc, WaitGroup};
use gosched::{channel, runtime};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

pub(super) const DEMO: Demo = Demo {
    name: "million",
    about: "a million goroutines that wait at once, and what threads cost",
    question: "Goroutines wait for one channel until all of them are there; then it is closed and \
        they end. The same with threads of the system, a hundredth as many. Look at the memory and \
        the time of each.",
    size: Size { what: "goroutines", usual: 1_000_000, quick: 10_000, most: 5_000_000 },
    wants_folder: false,
    columns: &["count", "start_ns", "end_ns", "each_bytes", "each_ns", "machines"],
    cases: &[Case::new(Wrong, THREADS, threads), Case::new(Right, GOROUTINES, goroutines)],
    explain,
};

const THREADS: &str = "threads of the system";
const GOROUTINES: &str = "goroutines";
/// More than a waiting goroutine takes.
const EACH_BYTES_MOST: u64 = 14 << 10;

fn goroutines(setup: &Setup) -> Result<Figures, String> {
    // Some is left, so that nobody else has to give memory up.
    let room = machine::available_bytes() / 4 * 3 / EACH_BYTES_MOST;
    let count = setup.size.min(room.max(1));
    let before = machine::resident_bytes();
    let (open, closed) = channel::bounded::<()>(0);
    let arrived = WaitGroup::new();
    let gone = WaitGroup::new();
    arrived.add(usize::try_from(count).map_err(|_| "too many")?);
    let begun = Instant::now();
    for _ in 0..count {
        let (closed, arrived) = (closed.clone(), arrived.clone());
        gone.go(move || {
            arrived.done();
            // It is an error by then: the other end has gone.
            let _ = closed.recv();
        });
    }
    arrived.wait();
    let start = begun.elapsed();
    let resident = machine::resident_bytes().saturating_sub(before);
    let machines = runtime::counters().machines;
    let ending = Instant::now();
    drop(open);
    gone.wait();
    let figures = figures(count, start.as_nanos(), ending.elapsed().as_nanos(), resident, machines);
    Ok(if count < setup.size {
        figures.note(format!("{count} instead of {}: there is memory for so many", setup.size))
    } else {
        figures
    })
}

fn threads(setup: &Setup) -> Result<Figures, String> {
    let count = (setup.size / 100).clamp(1, 2_000);
    let before = machine::resident_bytes();
    let state = Arc::new((Mutex::new((0_u64, false)), Condvar::new()));
    let begun = Instant::now();
    let mut all = Vec::new();
    // From a goroutine, whose calls of std's may block.
    for _ in 0..count {
        let shared = state.clone();
        let body = move || {
            let (state, changed) = &*shared;
            let mut state = state.lock().unwrap_or_else(|error| error.into_inner());
            state.0 += 1;
            changed.notify_all();
            while !state.1 {
                state = changed.wait(state).unwrap_or_else(|error| error.into_inner());
            }
        };
        match std::thread::Builder::new().spawn(body) {
            Ok(thread) => all.push(thread),
            Err(_) => break,
        }
    }
    let made = all.len() as u64;
    let (mutex, changed) = &*state;
    let mut guard = mutex.lock().map_err(|_| "a thread panicked")?;
    while guard.0 < made {
        guard = changed.wait(guard).map_err(|_| "a thread panicked")?;
    }
    drop(guard);
    let start = begun.elapsed();
    let resident = machine::resident_bytes().saturating_sub(before);
    let ending = Instant::now();
    mutex.lock().map_err(|_| "a thread panicked")?.1 = true;
    changed.notify_all();
    all.into_iter().try_for_each(|thread| thread.join()).map_err(|_| "a thread panicked")?;
    let figures = figures(made, start.as_nanos(), ending.elapsed().as_nanos(), resident, made);
    Ok(if made < count {
        figures.note(format!("the system refused the thread after {made}"))
    } else {
        figures
    })
}

fn figures(count: u64, start_ns: u128, end_ns: u128, resident: u64, machines: u64) -> Figures {
    Figures::new()
        .set("count", count)
        .set("start_ns", start_ns)
        .set("end_ns", end_ns)
        .set("each_bytes", resident / count.max(1))
        .set("each_ns", (start_ns + end_ns) / u128::from(count.max(1)))
        .set("machines", machines)
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let get = |case, figure| rows.get(case, figure);
    let number = get(GOROUTINES, "count");
    vec![
        Finding::of(
            number > 10 * get(GOROUTINES, "machines"),
            format!(
                "{} goroutines waited at once on {} threads, with a guard below each stack. They \
                 are cut from a few large reservations, so the kernel's limit on mappings \
                 (vm.max_map_count) stays as it is.",
                count(number),
                get(GOROUTINES, "machines"),
            ),
            "There were not many more goroutines than threads.",
        ),
        Finding::of(
            get(GOROUTINES, "each_ns") < get(THREADS, "each_ns"),
            format!(
                "Each took {} of memory and {} to start and end; a thread {} and {}. A thread also \
                 counts against limits of the system (threads-max, pids.max), and the kernel holds \
                 memory for it that is not counted here.",
                bytes(get(GOROUTINES, "each_bytes")),
                time(get(GOROUTINES, "each_ns")),
                bytes(get(THREADS, "each_bytes")),
                time(get(THREADS, "each_ns")),
            ),
            format!(
                "A goroutine took {} to start and end, a thread {}: with so few of them what is \
                 made once counts most.",
                time(get(GOROUTINES, "each_ns")),
                time(get(THREADS, "each_ns")),
            ),
        ),
    ]
}
