//! Panics stay in their goroutine, are delivered by `join`, and name who panicked.

use crate::child::Child;

const FATAL: &str = "sched_fatal";

#[test]
fn an_unjoined_panic_is_printed_and_counted() {
    let ended = Child::new(FATAL, &["panic-unjoined"]).procs(1).run();
    ended.expect_code(0).expect_out("panics=1\n").expect_err_parts(&[
        "goroutine 2 \"careless\" [running]:\n",
        "panicked at testprogs/src/bin/sched_fatal.rs:",
        "nobody joins\n",
    ]);
}

#[test]
fn a_panic_of_main_ends_with_101() {
    let ended = Child::new(FATAL, &["panic"]).run();
    ended.expect_code(101).expect_err_parts(&["goroutine 1 \"main\" [running]:\n", "main panics"]);
}

#[test]
fn a_panic_while_unwinding_aborts() {
    let ended = Child::new(FATAL, &["panic-nested"]).run();
    ended.expect_signal(libc::SIGABRT);
    ended.expect_err_parts(&["[running]:\n", "first\n", "[running]:\n", "second\n"]);
}

/// Two hundred goroutines switch while they unwind, and change machines.
#[test]
fn goroutines_wait_while_they_unwind() {
    for settings in ["", "tls=shared", "tls=syscall", "tls=slot", "tls=deadthread"] {
        for procs in [1, 2, 8] {
            let child = Child::new(FATAL, &["panic-parked"]).procs(procs);
            let ended = child.env("GOSCHED", settings).run();
            ended.expect_code(0).expect_out("right=true panics=100\n");
        }
    }
}

#[test]
fn join_delivers_what_was_thrown() {
    let ended = Child::new(FATAL, &["panic-payloads"]).run();
    ended.expect_code(0);
    ended.expect_out("Some(\"text\")\nSome(\"formatted 7\")\nSome([1, 2])\n");
}

#[test]
fn the_operator_may_ask_for_gos_way() {
    let ended = Child::new(FATAL, &["panic-abort"]).env("GOSCHED", "panic=abort").run();
    ended.expect_code(2).expect_err_parts(&["\"breaker\" [running]:\n", "it breaks\n"]);
    Child::new(FATAL, &["panic-abort"]).env("GOSCHED", "panic=unwind").run().expect_code(0);
}

#[test]
fn a_build_that_aborts_aborts() {
    let ended = Child::aborting("sched_fatal", &["panic-unjoined"]).run();
    ended.expect_signal(libc::SIGABRT).expect_out("");
    ended.expect_err_parts(&["\"careless\" [running]:\n", "nobody joins\n"]);
}
