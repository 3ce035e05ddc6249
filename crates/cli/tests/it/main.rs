//! The command `gosched` as its users meet it: what it prints, and its exit codes.

mod command_line;
mod compare;
mod debug;
mod demo;
mod doctor;
mod gosched;
mod lab;
mod serve;
mod trace;
#[path = "../../../topology/tests/it/tree.rs"]
mod tree;
