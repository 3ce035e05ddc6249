//! One cell, in the process that was started for it.

use crate::record::{Cell, Counts, Measured, Task};
use crate::task::{Job, ns_since};
use crate::variant::{self, Runner};
use crate::{probe, rivals, usage};
use gosched::runtime::{counters, gc, gomaxprocs, preemptions};
use gosched::thread::{JoinHandle, sleep};
use gosched::{Config, trace};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long the probe gets to begin its first sleep before the goroutines are created.
pub(crate) const HEAD_START: Duration = Duration::from_millis(5);

/// Runs `cell`, on the runtime if it has goroutines, which must not run yet.
///
/// # Errors
/// If there is no such variant, the runtime runs already, a trace can't be written, threads can't be
/// made, or a goroutine panicked.
pub fn measure(cell: Cell) -> Result<Measured, String> {
    let variant = variant::find(&cell.variant)
        .ok_or_else(|| format!("there is no variant `{}`", cell.variant))?;
    match variant.runner {
        Runner::Goroutines => {
            Config::new().procs(cell.procs).start().map_err(|error| error.to_string())?;
            gosched::run(move || traced(cell, variant.body))
        }
        Runner::Threads => rivals::threads(cell, variant.body),
        Runner::Pool => rivals::pool(cell, variant.body),
    }
}

/// The main goroutine, with a trace if the cell wants one.
fn traced(cell: Cell, body: variant::Body) -> Result<Measured, String> {
    let Some(path) = cell.trace.clone() else { return main(cell, body) };
    let failed = |error: io::Error| format!("can't write the trace {}: {error}", path.display());
    start_trace(&path).map_err(failed)?;
    let measured = main(cell, body);
    // The work itself needs none, and who looks for one in a trace is to find it.
    gc();
    trace::stop().map_err(failed)?;
    measured
}

fn start_trace(path: &Path) -> io::Result<()> {
    trace::start(File::create(path)?).map_err(io::Error::other)
}

fn main(cell: Cell, body: variant::Body) -> Result<Measured, String> {
    let alone_late_ns = probe::alone(sleep);
    let (stop, stopped) = channel();
    let probe = probe::spawn(stopped);
    sleep(HEAD_START);

    let (counts, cpu, start) = (Counts::now(), usage::cpu_time(), Instant::now());
    let handles = create(&cell, Job::new(body, &cell, start));
    let tasks = handles.into_iter().map(join).collect::<Result<Vec<Task>, _>>()?;
    let elapsed_ns = ns_since(start);
    let (counts, cpu) = (Counts::now().since(counts), usage::cpu_time() - cpu);

    drop(stop);
    Ok(Measured {
        gomaxprocs: gomaxprocs(0),
        elapsed_ns,
        cpu_ns: cpu.as_nanos() as u64,
        peak_rss_bytes: usage::peak_rss(),
        tasks,
        alone_late_ns,
        probe: probe::samples(&join(probe)?, start),
        counts,
        cell,
    })
}

fn create(cell: &Cell, job: Job) -> Vec<JoinHandle<Task>> {
    let mut handles = Vec::with_capacity(cell.goroutines);
    handles.extend((0..cell.goroutines).map(|_| job.spawn()));
    handles
}

fn join<T>(handle: JoinHandle<T>) -> Result<T, String> {
    handle.join().map_err(|_| "a goroutine panicked".to_owned())
}

impl Counts {
    fn now() -> Counts {
        let now = counters();
        Counts {
            scheduled: now.scheduled,
            runs_in_place: now.runs_in_place,
            direct_switches: now.direct_switches,
            steals: now.steals,
            timers: now.timers,
            stops: preemptions().in_place,
            declared_hand_offs: now.declared_hand_offs,
            undeclared_hand_offs: now.undeclared_hand_offs,
        }
    }

    fn since(self, before: Counts) -> Counts {
        Counts {
            scheduled: self.scheduled - before.scheduled,
            runs_in_place: self.runs_in_place - before.runs_in_place,
            direct_switches: self.direct_switches - before.direct_switches,
            steals: self.steals - before.steals,
            timers: self.timers - before.timers,
            stops: self.stops - before.stops,
            declared_hand_offs: self.declared_hand_offs - before.declared_hand_offs,
            undeclared_hand_offs: self.undeclared_hand_offs - before.undeclared_hand_offs,
        }
    }
}
