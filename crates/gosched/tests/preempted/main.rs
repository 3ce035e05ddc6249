//! Where and how goroutines are stopped by signal, each test in a process with settings of its own.
//!
//! No test asserts how long anything takes.

mod child;

mod calls;
mod frozen;
mod hosted;
mod keys;
mod limit;
mod loader;
mod processes;
mod safepoints;
mod signals;
