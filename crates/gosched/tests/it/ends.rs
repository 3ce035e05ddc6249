//! How a process ends, and with which code.

use crate::child::Child;

const FATAL: &str = "sched_fatal";
const CODE: &str = "sched_code";

#[test]
fn main_returns_what_std_lets_it_return() {
    Child::new(CODE, &["ok"]).run().expect_code(0).expect_err("");
    Child::new(CODE, &["error"]).run().expect_code(1).expect_err("Error: \"it failed\"\n");
    Child::new(CODE, &["seven"]).run().expect_code(7).expect_err("");
}

#[test]
fn others_are_not_waited_for() {
    for procs in [1, 2, 8] {
        let ended = Child::new(FATAL, &["returns"]).procs(procs).run();
        ended.expect_code(0).expect_err("").expect_out("main returns\n");
    }
}

/// On one processor those that were just spawned have not run when main returns.
#[test]
fn who_forgets_to_join_gets_a_hint() {
    let forgets = |hints: &str| loop {
        let child = Child::new(FATAL, &["forgets"]).procs(1).env("GOSCHED", hints);
        let ended = child.run();
        ended.expect_code(0);
        // Unless the kernel held main up for so long that its processor was handed on.
        if ended.out() == "main returns\n" {
            return ended;
        }
    };
    forgets("hints=1").expect_err_parts(&[
        "gosched: main has returned, and the process ends with it, while 3 goroutines had still \
         to run; wait for them: `join` what `go` returns, or use `thread::scope` or \
         `sync::WaitGroup` (GOSCHED=hints=0 silences this)\n",
    ]);
    forgets("hints=0").expect_err("");
    // Standard error is no terminal here.
    forgets("").expect_err("");
}

#[test]
fn any_goroutine_may_exit() {
    for procs in [1, 2, 8] {
        let ended = Child::new(FATAL, &["exit"]).procs(procs).run();
        ended.expect_code(5).expect_err("").expect_out("at exit\n");
        let ended = Child::new(FATAL, &["exit-small"]).procs(procs).run();
        ended.expect_code(6).expect_err("").expect_out("at exit\n");
    }
}

#[test]
fn an_overflow_names_its_goroutine_and_dumps_the_others() {
    let ended = Child::new(FATAL, &["overflow"]).procs(2).run();
    ended.expect_code(2);
    let number = ended.out().trim().strip_prefix("goroutine ").expect("a number");
    let named =
        format!("fatal error: stack overflow\n\ngoroutine {number} \"digger\" [running]:\n");
    ended.expect_err_parts(&[
        "runtime: goroutine stack exceeds ",
        "-byte limit\n",
        "\nruntime: where so much is needed: thread::Builder::stack_size, or GOSCHED=stack=1M\n",
        &named,
        "created by testprogs/src/bin/sched_fatal.rs:",
        "\n\ngoroutine 1 \"main\" [", // `join`, unless it has not come so far
        "\"bystander\" [park]:\n",
        "\"bystander\" [park]:\n",
        "\"bystander\" [park]:\n",
    ]);
    assert_eq!(ended.err().matches("\"digger\"").count(), 1, "{}", ended.story());
}

#[test]
fn main_starts_on_the_main_thread() {
    for procs in [1, 2, 8] {
        let ended = Child::new(FATAL, &["thread"]).procs(procs).run();
        ended.expect_code(0).expect_out("first=true goroutine=Some(1)\nname=Some(\"main\")\n");
    }
}

/// libc's `setuid` waits for an answer of every thread of the process.
#[test]
fn every_thread_answers_setuid() {
    Child::new(FATAL, &["setuid"]).run().expect_code(0).expect_out("setuid=0\n");
}
