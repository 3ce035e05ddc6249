//! What goes wrong when a thread is made up and code is stopped anywhere: state that leaks, calls
//! that end early, stops that never come. The programs are `testprogs/src/bin/hazard_*.rs`.
//!
//! No test asserts how long anything takes.

#[allow(dead_code, reason = "shared with the tests of blocking calls")]
#[path = "../blocked/child.rs"]
mod child;

mod calls;
mod embedded;
mod faults;
mod hogs;
mod loader;
mod state;
mod stops;

/// What `child` builds.
const PROGRAMS: &[&str] = &["--bins"];
