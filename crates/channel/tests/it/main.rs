//! What channels do, seen from outside: by goroutines, by plain threads, and between them.

mod basic;
mod select;
mod stress;
mod support;
mod table;
mod users;
