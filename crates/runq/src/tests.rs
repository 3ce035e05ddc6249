//! Tests of the queues: each on one thread, then all of them together on several.

mod task;

mod list;

mod ring;

mod global;

mod injector;

mod stress;
