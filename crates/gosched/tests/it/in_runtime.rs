//! Inside the runtime nothing allocates or frees: a program's allocator looks, and a planted
//! allocation in each of six places shows that it sees one. It also counts the memory of tasks.

use crate::child::Child;

const ALLOC: &str = "sched_alloc";
const PLANTED: &str = "sched_alloc_planted";

#[test]
fn nothing_allocates_inside_the_runtime() {
    for settings in ["", "tls=shared", "tls=syscall", "tls=slot", "tls=deadthread"] {
        for procs in [1, 2, 8] {
            let child = Child::new(ALLOC, &[]).procs(procs).env("GOSCHED", settings);
            let ended = child.run();
            let figures = ended.figures();
            figures.expect_some("timers");
            figures.expect_some("overflows");
            figures.expect_some("runs_in_place");
            // A wave of a thousand and what eight processors keep, at most.
            figures.expect_some("small_tasks");
            figures.expect_at_most("blocks_made", 10_000);
            // Tasks of the runtime's own may end after the collection.
            figures.expect_at_most("blocks_left", 64);
            if procs == 8 {
                figures.expect_some("steals");
            }
        }
    }
}

#[test]
fn a_planted_allocation_is_seen() {
    for place in ["spawn", "exit", "park", "ready", "timer", "steal"] {
        let child = Child::planted(PLANTED, &[]).procs(8).env("GOSCHED_TEST_PLANT", place);
        let ended = child.run();
        ended.expect_signal(libc::SIGABRT);
        ended.expect_err_parts(&["allocator called inside the runtime\n"]);
    }
    Child::planted(PLANTED, &[]).procs(8).run().expect_code(0);
}
