//! What locks, groups, pools and contexts do, seen from outside: by goroutines, by plain threads,
//! and between them.

mod context;
mod context_table;
mod go_tests;
mod groups;
mod locks;
mod once;
mod pools;
mod profile;
mod semaphore;
mod std_shapes;
mod stress;
#[allow(dead_code, reason = "shared with the tests of channels")]
#[path = "../../../channel/tests/it/support.rs"]
mod support;
mod wait_group;
