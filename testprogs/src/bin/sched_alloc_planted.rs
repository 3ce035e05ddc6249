//! `sched_alloc`, built with allocations planted in the runtime.

#[path = "sched_alloc.rs"]
mod program;

fn main() {
    program::main();
}
