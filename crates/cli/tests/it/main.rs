//! The command `gosched` as its users meet it: what it prints, and its exit codes.

mod command_line;
mod gosched;
mod lab;
mod serve;
