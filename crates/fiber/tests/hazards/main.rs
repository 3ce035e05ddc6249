//! What breaks when threads are made up: one test a hazard, each under every way of keeping
//! thread-locals.
//!
//! How thread-locals are kept is decided once per process, so each test starts itself again in a
//! child process per mode (see `harness`).

mod harness;

mod debugger;
mod dropped;
mod fork;
mod keys;
mod libc_state;
mod memory;
mod modules;
mod mutexes;
mod registers;
mod setid;
mod stress;
