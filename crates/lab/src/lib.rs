//! Experiments that show what the scheduler does, and explain it from the numbers they made.
//!
//! [`compare`] runs the same jobs on goroutines and on others. The rest of the crate is schedule
//! forensics: many goroutines with the same few milliseconds of work each, in several
//! [variants](VARIANTS) and on several numbers of processors. Beside them a probe goroutine sleeps
//! 1 ms again and again and records how late it wakes. Threads and a thread pool do the same work
//! without the runtime, and of repetitions with goroutines execution traces are taken.
//!
//! Layer: beside `http`; uses only what the facade offers to everybody, and the reader of
//! traces. Unsafe: none.
//!
//! A run goes through the modules from top to bottom:
//!
//! ```text
//! Plan -> Cell (one variant on one number of processors)
//!      -> a child process each: cell::measure -> Measured, as JSON on its standard output
//!      -> Summary (stats) -> findings -> tables, NOTES.md, drawings, index.html, results.json
//! Plan -> Cell again, with a trace -> Traced (what the trace says) -> findings, timelines
//! ```
//!
//! Invariants
//! * I1. A cell has a process of its own, so that no cell runs with what another left behind.
//! * I2. What comes out of a child is checked ([`Measured::check`]) before anything uses it.
//! * I3. A cell with a trace gives no other number than those about its trace.
//! * I4. A finding is a function of the numbers, and says so when they don't show what is expected.
#![forbid(unsafe_code)]

mod plan;
mod variant;

mod cell;
mod probe;
mod rivals;
mod task;
mod usage;
mod work;

mod record;

mod traced;

mod child;
mod run;

mod stats;
mod summary;

mod findings;

mod chart;
mod lanes;
mod svg;

mod figure;
mod notes;
mod page;
mod report;
mod table;
mod text;

pub mod compare;

pub use cell::measure;
pub use findings::Finding;
pub use plan::{Plan, TRACED, cpus, default_procs};
pub use record::{Cell, Counts, Measured, Sample, Task};
pub use report::{CellResult, Document, write};
pub use run::{End, Failure, Progress, Run, run};
pub use stats::{Line, Quantiles};
pub use summary::Summary;
pub use text::terminal;
pub use traced::{ProcessorEvents, Span, Traced, TracedSleep};
pub use variant::{VARIANTS, Variant};

#[cfg(test)]
mod synthetic;
