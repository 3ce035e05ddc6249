//! What one cell is and what it measured, as they travel between the processes.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One variant on one number of processors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The name of a row of [`VARIANTS`](crate::VARIANTS).
    pub variant: String,
    /// GOMAXPROCS; CPUs of the threads, or threads of the pool, where there are no goroutines.
    pub procs: usize,
    /// How many goroutines have the work to do.
    pub goroutines: usize,
    /// What each has to do, by the clock of an undisturbed CPU.
    pub work_ns: u64,
    /// The same in rounds of computing.
    pub rounds: u64,
    /// Where an execution trace of it goes, if one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
}

/// One goroutine. Times are since the start of the cell, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// When `go` was called for it.
    pub created_ns: u64,
    /// When its first instruction ran.
    pub first_run_ns: u64,
    /// When it had done its work.
    pub done_ns: u64,
    /// How long its computing took by the clock. What the kernel took from it in the middle is
    /// in there, and what it waited for after it was stopped; what it waited for between two
    /// stretches is not.
    pub own_ns: u64,
    /// Rounds that it computed.
    pub rounds: u64,
    /// How often it gave way in between.
    pub yields: u64,
}

impl Task {
    /// From `go` to its first instruction.
    #[must_use]
    pub fn wait_ns(&self) -> u64 {
        self.first_run_ns - self.created_ns
    }

    /// How long it took to compute a stretch, on average.
    #[must_use]
    pub fn turn_ns(&self) -> u64 {
        self.own_ns / (self.yields + 1)
    }

    /// Neither computing nor done, after its first instruction: waiting again, or asleep.
    #[must_use]
    pub fn rest_ns(&self) -> u64 {
        self.done_ns - self.first_run_ns - self.own_ns
    }
}

/// One sleep of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When it fell asleep, since the start of the cell.
    pub at_ns: u64,
    /// How much longer than asked it was until it ran again.
    pub late_ns: u64,
}

/// What the scheduler did meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Rounds of the scheduler's loop that found a goroutine.
    pub scheduled: u64,
    /// Goroutines that began on the stack of one that had just ended.
    pub runs_in_place: u64,
    /// Switches from goroutine to goroutine without the scheduler's stack.
    pub direct_switches: u64,
    /// Halves of a queue stolen by another processor.
    pub steals: u64,
    /// Timers fired.
    pub timers: u64,
    /// Goroutines stopped between two instructions.
    pub stops: u64,
    /// Processors taken from threads in declared blocking calls.
    pub declared_hand_offs: u64,
    /// Processors taken from threads that blocked without saying so.
    pub undeclared_hand_offs: u64,
}

/// All that one cell measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// What was asked for.
    pub cell: Cell,
    /// GOMAXPROCS as the runtime gives it, or what stands for it.
    pub gomaxprocs: usize,
    /// From the start until the last goroutine was joined.
    pub elapsed_ns: u64,
    /// CPU time that the process used meanwhile, all threads together; the kernel counts in 10 ms.
    pub cpu_ns: u64,
    /// The most memory that the process had resident until its end; 0 if the kernel doesn't say.
    pub peak_rss_bytes: u64,
    /// In the order in which they were created.
    pub tasks: Vec<Task>,
    /// How late the probe woke before the start, with nothing else to run.
    pub alone_late_ns: Vec<u64>,
    /// The probe's sleeps beside the goroutines.
    pub probe: Vec<Sample>,
    /// What the scheduler did.
    pub counts: Counts,
}

impl Measured {
    /// Whether the numbers can be true: everybody completed, did all the work, and the parts of
    /// each time sum up.
    ///
    /// # Errors
    /// A sentence about the first that can't.
    pub fn check(&self) -> Result<(), String> {
        let Cell { procs, goroutines, .. } = &self.cell;
        if self.gomaxprocs != *procs {
            return Err(format!(
                "the runtime has {} processors instead of {procs}; does GOSCHED set them?",
                self.gomaxprocs
            ));
        }
        if self.tasks.len() != *goroutines {
            return Err(format!("{} of {goroutines} goroutines completed", self.tasks.len()));
        }
        self.tasks.iter().enumerate().try_for_each(|(i, task)| {
            self.check_task(task).map_err(|reason| format!("goroutine {i}: {reason}: {task:?}"))
        })
    }

    fn check_task(&self, task: &Task) -> Result<(), &'static str> {
        let Task { created_ns, first_run_ns, done_ns, own_ns, rounds, .. } = *task;
        let awake_or_waiting = done_ns.checked_sub(first_run_ns).ok_or("it ended before it ran")?;
        if first_run_ns < created_ns {
            return Err("it ran before it was created");
        }
        if own_ns > awake_or_waiting {
            return Err("it computed for longer than it was there");
        }
        if done_ns > self.elapsed_ns {
            return Err("it ended after the end of the cell");
        }
        if rounds == 0 && awake_or_waiting < self.cell.work_ns {
            return Err("it neither computed nor slept long enough");
        }
        if rounds != 0 && rounds != self.cell.rounds {
            return Err("it computed something else than the work");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
