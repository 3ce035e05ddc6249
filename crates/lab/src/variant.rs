//! What the goroutines of a cell do, one row for each way.

use std::time::Duration;

/// One way to spend the work.
#[derive(Debug)]
pub struct Variant {
    /// As the tables and the command line write it.
    pub name: &'static str,
    /// One sentence about it.
    pub about: &'static str,
    pub(crate) runner: Runner,
    pub(crate) body: Body,
    /// What `GOSCHED` gets in the processes of this variant, beside what it holds already.
    pub(crate) settings: &'static str,
}

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// A goroutine for each piece, on so many processors.
    Goroutines,
    /// A thread for each, on so many CPUs.
    Threads,
    /// So many threads, which take one piece after another.
    Pool,
}

/// What one goroutine does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// Computes from beginning to end.
    Compute,
    /// Computes, and calls `runtime::gosched` after about this much of it.
    ComputeAndYield(Duration),
    /// Sleeps as long as it would have computed.
    Sleep,
    /// Calls C code that sleeps in the kernel as long, and tells the runtime nothing.
    Block,
    /// The same inside `gosched::blocking`.
    BlockDeclared,
}

/// How long the runtime lets a goroutine compute while others wait, if it can stop it.
const SLICE: Duration = Duration::from_millis(10);

/// The setting with which nothing stops a goroutine that computes.
const NEVER_STOP: &str = "asyncpreemptoff=1";

impl Variant {
    /// Whether the runtime may stop a goroutine that computes.
    pub(crate) fn is_stopped(&self) -> bool {
        self.runner == Runner::Goroutines && self.settings != NEVER_STOP
    }

    /// What the second column of a table counts.
    pub(crate) fn on(&self) -> &'static str {
        match self.runner {
            Runner::Goroutines => "processor",
            Runner::Threads => "CPU",
            Runner::Pool => "pool thread",
        }
    }

    /// The same, shorter, for a legend.
    pub(crate) fn on_short(&self) -> &'static str {
        match self.runner {
            Runner::Goroutines => "proc",
            Runner::Threads => "CPU",
            Runner::Pool => "thread",
        }
    }

    /// How long a goroutine keeps its processor that would compute for `ns`.
    pub(crate) fn turn_ns(&self, ns: f64) -> f64 {
        if self.is_stopped() { ns.min(SLICE.as_nanos() as f64) } else { ns }
    }
}

/// Computes, and nothing else.
pub(crate) const BUSY: &str = "busy";
/// The same, and nothing stops it.
pub(crate) const UNSTOPPED: &str = "unstopped";
/// Computes and gives way now and then.
pub(crate) const YIELDS: &str = "yields";
/// Sleeps instead.
pub(crate) const SLEEPS: &str = "sleeps";
/// Blocks its thread.
pub(crate) const BLOCKS: &str = "blocks";
/// Blocks its thread, and says so.
pub(crate) const DECLARES: &str = "declares";

/// The same work on operating system threads.
pub(crate) const THREADS: &str = "threads";
/// The same work on a pool of them.
pub(crate) const POOL: &str = "pool";

/// The rows of the experiment.
pub const VARIANTS: &[Variant] = &[
    Variant {
        name: BUSY,
        about: "computes from beginning to end and never calls the runtime",
        runner: Runner::Goroutines,
        body: Body::Compute,
        settings: "",
    },
    Variant {
        name: UNSTOPPED,
        about: "the same with `GOSCHED=asyncpreemptoff=1`, as in Go before 1.14: nothing stops it",
        runner: Runner::Goroutines,
        body: Body::Compute,
        settings: NEVER_STOP,
    },
    Variant {
        name: YIELDS,
        about: "computes as much, with a call of `runtime::gosched()` after about every 100 us",
        runner: Runner::Goroutines,
        body: Body::ComputeAndYield(Duration::from_micros(100)),
        settings: "",
    },
    Variant {
        name: SLEEPS,
        about: "sleeps as long instead of computing",
        runner: Runner::Goroutines,
        body: Body::Sleep,
        settings: "",
    },
    Variant {
        name: BLOCKS,
        about: "blocks its thread as long in the kernel, which nobody tells the runtime",
        runner: Runner::Goroutines,
        body: Body::Block,
        settings: "",
    },
    Variant {
        name: DECLARES,
        about: "the same, declared by `gosched::blocking`",
        runner: Runner::Goroutines,
        body: Body::BlockDeclared,
        settings: "",
    },
    Variant {
        name: THREADS,
        about: "computes as *busy*, each on an operating system thread of its own; *procs* is the \
                number of CPUs that they may use, and the probe is one more thread",
        runner: Runner::Threads,
        body: Body::Compute,
        settings: "",
    },
    Variant {
        name: POOL,
        about: "computes as *busy*, as jobs of a thread pool (rayon's) of *procs* threads; the \
                probe is a job that a timer hands to the pool every ms",
        runner: Runner::Pool,
        body: Body::Compute,
        settings: "",
    },
];

/// The row with this name.
pub(crate) fn find(name: &str) -> Option<&'static Variant> {
    VARIANTS.iter().find(|variant| variant.name == name)
}

#[cfg(test)]
mod tests {
    use super::{BUSY, POOL, THREADS, UNSTOPPED, VARIANTS, find};

    #[test]
    fn the_runtime_stops_the_goroutines_of_all_rows_but_one() {
        let rows = VARIANTS.iter().filter(|variant| !variant.is_stopped());
        assert_eq!(
            rows.map(|variant| variant.name).collect::<Vec<_>>(),
            [UNSTOPPED, THREADS, POOL]
        );
    }

    #[test]
    fn a_turn_is_a_slice_at_most_if_something_ends_it() {
        let turns = |name| {
            let variant = find(name).expect("a row of the table");
            [4.0e6, 40.0e6].map(|ns| variant.turn_ns(ns))
        };
        assert_eq!(turns(BUSY), [4.0e6, 10.0e6]);
        assert_eq!(turns(UNSTOPPED), [4.0e6, 40.0e6]);
    }
}
