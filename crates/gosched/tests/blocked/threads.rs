//! How many threads blocking calls take. The program is `testprogs/src/bin/block_threads.rs`.

use crate::child::run;

#[test]
fn at_the_limit_goroutines_wait_for_a_thread() {
    let ended = run("maxthreads=8", "block_threads", &["limit"]);
    assert_eq!(ended.number("done"), 60);
    assert!(ended.number("machines_max") <= 8);
}

#[test]
fn a_system_that_refuses_threads_is_survived() {
    let ended = run("", "block_threads", &["refused"]);
    assert_eq!(ended.number("done"), 60);
}

/// libc has a stack for a thread, but there is no memory for its signal stack. What a thread needs is
/// taken before it is made, so that it is refused like any other: a thread that finds none can only
/// end the process, as std's do.
#[test]
fn a_system_without_memory_for_threads_is_survived() {
    let ended = run("", "block_threads", &["memoryless"]);
    assert_eq!(ended.number("done"), 60);
}

#[test]
fn the_world_stops_while_processors_wait_for_a_thread() {
    assert_eq!(run("maxthreads=4", "block_threads", &["stop-at-limit"]).number("done"), 30);
}

#[test]
fn where_nothing_can_help_the_process_ends_as_gos_does() {
    let ended = run("maxthreads=8", "block_threads", &["locked"]);
    ended.expect_code(2);
    let text = "runtime: program exceeds 8-thread limit\nfatal error: thread exhaustion\n";
    assert_eq!(ended.err(), text);
}

#[test]
fn thousands_of_blocked_reads_take_a_bounded_number_of_threads_for_a_while() {
    thousands_of_reads("undeclared");
}

#[test]
fn so_do_thousands_of_declared_ones() {
    thousands_of_reads("declared");
}

#[track_caller]
fn thousands_of_reads(kind: &str) {
    let ended = run("maxthreads=1500", "block_threads", &["pipes", "12000", "64", kind]);
    assert_eq!(ended.number("done"), 12_000);
    assert!(ended.number("machines_blocked") <= 1_500);
    assert!(ended.number("machines_left") <= 32);
}

/// With every processor on its way from one blocked thread to the next, the monitor must pause all
/// the same: threads to come wait for the CPU that it would burn.
#[test]
fn the_monitor_does_not_wake_itself_for_what_waits_for_a_thread() {
    let ended = run("", "block_threads", &["ticker"]);
    let (goroutines, ticks) = (ended.number("goroutines"), ended.number("ticks"));
    assert!(ended.number("hand_offs") >= goroutines / 2, "they block");
    // Somebody may call for each that wakes or sleeps, and for each tick.
    let (calls, most) = (ended.number("monitor_calls"), 4 * (goroutines + ticks));
    assert!(calls <= most, "{calls} calls of the monitor, {most} at most");
}

/// Locks of std, whose waits the runtime sees, and of libc, whose waits it doesn't.
#[test]
fn the_last_thread_goes_to_a_holder_that_was_stopped() {
    for lock in ["std", "libc"] {
        for procs in ["1", "2"] {
            let ended = run("maxthreads=8", "block_threads", &["held", lock, "computes", procs]);
            assert_eq!(ended.number("done"), 100);
            // With two processors it may keep its own.
            assert!(procs == "2" || ended.number("stopped") >= 1);
        }
    }
}

#[test]
fn the_last_thread_goes_to_a_holder_that_has_yielded() {
    for lock in ["std", "libc"] {
        for procs in ["1", "2"] {
            let ended = run("maxthreads=8", "block_threads", &["held", lock, "yields", procs]);
            assert_eq!(ended.number("done"), 100);
        }
    }
}

/// Neither a new thread nor a signal that ends a call: who holds the lock gets the last thread, and
/// where that helps nobody, there is a word about it.
#[test]
fn without_threads_and_signals_the_holder_goes_on_or_there_is_a_word() {
    for lock in ["std", "libc"] {
        let arguments = ["held-without-signals", lock, "yields", "2"];
        assert_eq!(run("maxthreads=8", "block_threads", &arguments).number("done"), 100);
    }
    let arguments = ["pipes-without-signals", "200", "8", "undeclared"];
    let ended = run("maxthreads=16", "block_threads", &arguments);
    assert_eq!(ended.number("done"), 200);
    assert!(ended.err().contains("refuses signals to them"), "{}", ended.err());
}
