//! Whole programs: many connections, limits, children.

use super::child::Child;

/// Ten thousand goroutines that wait for sockets cost no thread.
#[test]
fn idle_connections_cost_no_thread() {
    let ended = Child::new("net_idle", &["10000"]).procs(2).run();
    let figures = ended.figures();
    figures.expect("servers", 1);
    figures.expect("idle_at_once", 10_000);
    figures.expect("answered", 10_000);
    figures.expect("answers_seen", 10_000);
    // A handful, whatever the number of connections: the program also starts a child and reads from
    // a pipe, undeclared, and each such call may take a thread. So may one that lasts for once.
    figures.expect_at_most("handed_off", 500);
    figures.expect_at_most("threads_with", 20 + figures.get("handed_off"));
    println!("{}", ended.out());
}

/// As `net_idle 100000` does with as many as a limit of files wants: each has a loopback address of
/// its own, and all connections are there before the first one is used.
#[test]
fn idle_connections_of_several_processes() {
    let ended = Child::new("net_idle", &["1200", "3"]).procs(2).run();
    let figures = ended.figures();
    figures.expect("servers", 3);
    figures.expect("idle_at_once", 1200);
    figures.expect("answered", 1200);
    figures.expect("answers_seen", 1200);
}

#[test]
fn nothing_is_left_of_100_000_connections() {
    let ended = Child::new("net_limits", &["churn", "100000"]).procs(2).run();
    let figures = ended.figures();
    figures.expect("echoes", 100_000);
    figures.expect("leaked", 0);
}

/// Accepting goes on once there are files again, without another connection to wake it.
#[test]
fn accepting_recovers_from_too_many_files() {
    for kind in ["tcp", "unix"] {
        let ended = Child::new("net_limits", &["full", kind]).procs(2).run();
        let figures = ended.figures();
        figures.expect_some("queued");
        figures.expect_some("refused");
    }
}

#[test]
fn children_get_none_of_our_files_and_the_first_mask() {
    let child = Child::new("net_limits", &["children", "200"]);
    let ended = child.procs(2).env("GOSCHED", "slice=100us").run();
    let figures = ended.figures();
    figures.expect("started", 200);
    figures.expect_some("preempted");
    figures.expect_some("rounds");
    figures.expect("files_inherited", 0);
    figures.expect("masks_changed", 0);
    figures.expect("mask_at_start", 1 << (libc::SIGUSR2 - 1));
}

/// Machines poll every 61st round at the least; where all of them compute a round takes a time slice,
/// and only the monitor's look at the network is sooner.
#[test]
fn sockets_are_served_beside_goroutines_that_compute() {
    for procs in [1, 2] {
        let ended = Child::new("net_busy", &["hogs", "50"]).procs(procs).run();
        let figures = ended.figures();
        figures.expect("soon", 50);
        figures.expect_some("polls");
    }
}

/// Full queues don't keep machines from the poller.
#[test]
fn sockets_are_served_beside_goroutines_that_yield() {
    for procs in [1, 2] {
        let ended = Child::new("net_busy", &["yields", "200"]).procs(procs).run();
        ended.figures().expect("done", 200);
        ended.figures().expect_some("polls");
    }
}

/// The machine that leaves the poller for one goroutine wakes nobody in its place; who comes from a
/// plain thread meanwhile still gets the processor that is idle.
#[test]
fn nobody_waits_for_a_goroutine_that_a_socket_woke() {
    let child = Child::new("net_busy", &["alone", "200"]);
    let ended = child.procs(2).env("GOSCHED", "slice=off").run();
    ended.figures().expect("done", 200);
}

/// Who moves a deadline wakes a reader, and makes room only when that is done.
#[test]
fn a_moved_deadline_wakes_and_makes_room() {
    let child = Child::new("net_busy", &["moves", "300"]);
    let ended = child.procs(2).env("GOSCHED", "slice=100us").run();
    ended.figures().expect_some("done");
}

/// Who waits for a file waits for somebody outside.
#[test]
fn waiting_for_files_is_no_deadlock() {
    let ended = Child::new("net_limits", &["quiet"]).procs(2).run();
    ended.figures().expect("said", 1);
    ended.expect_err("");
}
