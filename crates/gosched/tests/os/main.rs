//! Files, child processes, signals.

mod files;
mod processes;
mod signals;
