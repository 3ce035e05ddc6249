//! Files, child processes, signals, standard input.

mod files;
mod processes;
mod signals;
mod stdin;
