//! Goroutines in blocking calls, on threads that wait for other things, and locked to threads.

mod attributes;
mod child;
mod stops;
mod threads;
mod waits;

/// What `child` builds.
const PROGRAMS: &[&str] = &["--bins"];
