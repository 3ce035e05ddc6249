//! One cell, in the process that was started for it.

use crate::record::{Cell, Counts, Measured, Task};
use crate::task::{Job, ns_since};
use crate::{cpu_time, probe, variant};
use gosched::runtime::{counters, gomaxprocs, preemptions};
use gosched::thread::{JoinHandle, sleep};
use gosched::{Config, go};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long the probe gets to begin its first sleep before the goroutines are created.
const HEAD_START: Duration = Duration::from_millis(5);

/// Starts the runtime and runs `cell`.
///
/// # Errors
/// If there is no such variant, the runtime runs already, or a goroutine panicked.
pub fn measure(cell: Cell) -> Result<Measured, String> {
    let variant = variant::find(&cell.variant)
        .ok_or_else(|| format!("there is no variant `{}`", cell.variant))?;
    Config::new().procs(cell.procs).start().map_err(|error| error.to_string())?;
    gosched::run(move || main(cell, variant.body))
}

/// The main goroutine.
fn main(cell: Cell, body: variant::Body) -> Result<Measured, String> {
    let alone_late_ns = probe::alone();
    let (stop, stopped) = channel();
    let probe = go(move || probe::until(&stopped));
    sleep(HEAD_START);

    let (counts, cpu, start) = (Counts::now(), cpu_time::used(), Instant::now());
    let handles = create(&cell, Job::new(body, &cell, start), start);
    let tasks = handles.into_iter().map(join).collect::<Result<Vec<Task>, _>>()?;
    let elapsed_ns = ns_since(start);
    let (counts, cpu) = (Counts::now().since(counts), cpu_time::used() - cpu);

    drop(stop);
    Ok(Measured {
        gomaxprocs: gomaxprocs(0),
        elapsed_ns,
        cpu_ns: cpu.as_nanos() as u64,
        tasks,
        alone_late_ns,
        probe: probe::samples(&join(probe)?, start),
        counts,
        cell,
    })
}

fn create(cell: &Cell, job: Job, start: Instant) -> Vec<JoinHandle<Task>> {
    let mut handles = Vec::with_capacity(cell.goroutines);
    handles.extend((0..cell.goroutines).map(|_| {
        let created_ns = ns_since(start);
        go(move || job.work(created_ns))
    }));
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
