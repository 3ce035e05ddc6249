//! Profiles in pprof's format: where threads compute, where goroutines are and what they wait for. Go's
//! package `runtime/pprof`.
//!
//! Layer: `pprof`. Uses `sched` and `unwind`; channels and locks tell of their waits through the scheduler's
//! hook. Programs use it through the facade, as `gosched::pprof`.
//!
//! `go tool pprof FILE` opens what is written here. Nothing is noted, and nothing costs anything, before it
//! is asked for.

mod cpu;
mod encode;
mod label;
mod profiles;
mod proto;
mod samples;
mod text;
mod timers;
mod waits;

pub use cpu::{is_cpu_profiled, start_cpu_profile, start_cpu_profile_at, stop_cpu_profile};
pub use gosched_sched::Labels;
pub use label::{labels, with_labels};
pub use profiles::Profile;
pub use waits::{set_block_profile_rate, set_mutex_profile_fraction};

#[cfg(test)]
mod tests;
