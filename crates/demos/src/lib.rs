//! Demos: one for each thing that goes wrong with goroutines, the wrong way beside the right one.
//!
//! Layer: a library below the command; uses only public functions of the facade, and the reader of
//! traces. Unsafe: none. Prints nothing: `gosched demo NAME` does.
//!
//! A demo is a list of cases. Each case runs in a process of its own, so that it starts with the
//! settings it needs (preemption off, one processor) and counts nobody else's threads, goroutines
//! or memory. It comes back as a row of figures, and the demo explains the rows.
//!
//! Invariants
//! * I1. What a demo says is computed from the figures of this very run; a [`Finding`] that they do
//!   not bear out says so ([`Finding::shown`]).
//! * I2. A case waits for events, never for a time that should be enough.
//!
//! Where things are: what a demo is in `demo`, processes in `run`, text in `text`, and one file for
//! each demo in `demos`.
#![forbid(unsafe_code)]

mod demo;
mod demos;

mod machine;

mod container;
mod row;
mod run;
mod text;

pub use demo::{Demo, Say, Setup, Size};
pub use demos::{all, find};
pub use row::{Finding, Row, Story, Verdict};
pub use run::{Asked, run, run_case};
pub use text::{paragraph, story};
