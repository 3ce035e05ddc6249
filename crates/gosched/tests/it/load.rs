//! Under load: never too many at once, nothing lost, nothing run twice, nobody starved.

use crate::child::{Child, Figures};

const LOAD: &str = "sched_load";

/// Never more goroutines in user code than processors, but for those whose machine the kernel put
/// to sleep (a page fault under memory pressure): the monitor counts what it takes from them.
#[track_caller]
fn never_more_at_once_than(procs: usize) {
    // One that is stopped between any two instructions would count as if it ran.
    let child = Child::new(LOAD, &["at-once"]).procs(procs);
    let ended = child.env("GOSCHED", "asyncpreemptoff=1").run();
    let figures = ended.figures();
    figures.expect_at_most("most", procs as u64 + figures.get("without_processor"));
    figures.expect("inside", 0);
    if procs >= 2 {
        assert!(figures.get("most") >= 2, "they never ran side by side\n{}", ended.story());
        figures.expect_some("steals");
    }
}

#[test]
fn never_more_at_once_than_1() {
    never_more_at_once_than(1);
}

#[test]
fn never_more_at_once_than_2() {
    never_more_at_once_than(2);
}

#[test]
fn never_more_at_once_than_3() {
    never_more_at_once_than(3);
}

#[test]
fn never_more_at_once_than_8() {
    never_more_at_once_than(8);
}

/// Ten million in a release build.
const SPAWNS: usize = if cfg!(debug_assertions) { 200_000 } else { 3_300_000 };

#[track_caller]
fn each_runs_once(procs: usize, settings: &str, spawns: usize) {
    let count = spawns.to_string();
    let child = Child::new(LOAD, &["spawns", &count]).procs(procs).env("GOSCHED", settings);
    let ended = child.run();
    let figures = ended.figures();
    figures.expect("ended", spawns as u64);
    figures.expect("wrong", 0);
    figures.expect_some("overflows");
    figures.expect_some("runs_in_place");
    if procs > 1 {
        figures.expect_some("steals");
    }
}

#[test]
fn each_runs_once_on_1() {
    each_runs_once(1, "", SPAWNS);
}

#[test]
fn each_runs_once_on_2() {
    each_runs_once(2, "", SPAWNS);
}

#[test]
fn each_runs_once_on_8() {
    each_runs_once(8, "", SPAWNS);
}

#[test]
fn each_runs_once_on_shared_thread_locals() {
    each_runs_once(8, "tls=shared", SPAWNS / 10);
}

#[test]
fn each_runs_once_where_registers_need_system_calls() {
    each_runs_once(2, "tls=syscall", SPAWNS / 10);
}

#[test]
fn each_runs_once_on_blocks_of_dead_threads() {
    each_runs_once(2, "tls=deadthread", SPAWNS / 10);
}

/// Each on a thread of its own, which ends with it, while others are parked on theirs.
#[test]
fn each_has_a_thread() {
    const COUNT: usize = 500;
    let child = Child::new(LOAD, &["parked", &COUNT.to_string()]).procs(2);
    let ended = child.env("GOSCHED", "tls=threads").run();
    let figures = ended.figures();
    figures.expect("parked", COUNT as u64);
    assert!(figures.get("threads") > COUNT as u64, "{}", ended.story());
    figures.expect("left", 0);
    let ended = Child::new(LOAD, &["ends", "2000"]).procs(2).env("GOSCHED", "tls=threads").run();
    ended.figures().expect("sum", (0..2_000).sum());
}

/// No more threads than a process with `procs` processors needs: a machine for each, some to spare,
/// and five helpers; and one for each processor that was taken from a thread which the kernel had put
/// to sleep. These goroutines make no call that could block, so that only pages that are slow do it:
/// hardly ever on a machine that is well, never for one goroutine in a hundred.
#[track_caller]
fn takes_few_threads(figures: &Figures<'_>, procs: usize, goroutines: usize) {
    figures.expect_at_most("handed_off", goroutines as u64 / 100);
    figures.expect_at_most("threads", 2 * procs as u64 + 10 + figures.get("handed_off"));
}

#[track_caller]
fn a_hundred_thousand_end(procs: usize) {
    let ended = Child::new(LOAD, &["ends", "100000"]).procs(procs).run();
    let figures = ended.figures();
    figures.expect("sum", (0..100_000).sum());
    takes_few_threads(&figures, procs, 100_000);
    figures.expect_some("steals");
}

#[test]
fn a_hundred_thousand_end_on_2() {
    a_hundred_thousand_end(2);
}

#[test]
fn a_hundred_thousand_end_on_8() {
    a_hundred_thousand_end(8);
}

#[track_caller]
fn are_parked_at_once(count: usize, procs: usize) {
    let ended = Child::new(LOAD, &["parked", &count.to_string()]).procs(procs).run();
    let figures = ended.figures();
    figures.expect("parked", count as u64);
    takes_few_threads(&figures, procs, count);
    // Far below the default of vm.max_map_count, 65,530.
    figures.expect_at_most("maps", 20_000);
    figures.expect("left", 0);
    println!("{count} parked goroutines: {} KiB resident", figures.get("rss_kib"));
}

#[test]
fn a_hundred_thousand_are_parked_at_once_on_2() {
    are_parked_at_once(100_000, 2);
}

#[test]
fn a_hundred_thousand_are_parked_at_once_on_8() {
    are_parked_at_once(100_000, 8);
}

#[test]
fn a_million_are_parked_at_once() {
    const GIB_NEEDED: u64 = 12;
    if cfg!(debug_assertions) {
        return println!("SKIPPED: a million goroutines are for release builds");
    }
    if available_gib() < GIB_NEEDED {
        return println!("SKIPPED: fewer than {GIB_NEEDED} GiB of memory are available");
    }
    are_parked_at_once(1_000_000, 2);
}

fn available_gib() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("readable");
    let line = text.lines().find(|line| line.starts_with("MemAvailable:")).expect("a field");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    kib >> 20
}

/// Goroutines whose time-outs are always due again let others have their turn.
#[test]
fn endless_timeouts_starve_nobody() {
    for us in ["0", "2", "20"] {
        let ended = Child::new(LOAD, &["timeouts", us]).procs(1).run();
        let figures = ended.figures();
        figures.expect("others", 1);
        figures.expect_some("timeouts");
    }
}

/// Whatever makes a goroutine runnable wakes an idle processor for it: here its own is busy until
/// it has run.
#[test]
fn a_runnable_goroutine_wakes_an_idle_processor() {
    // On a machine that is busy otherwise each round may cost both threads a slice of the kernel's.
    const ROUNDS: usize = 300;
    let child = Child::new(LOAD, &["beside", &ROUNDS.to_string()]).procs(2);
    let ended = child.env("GOSCHED", "asyncpreemptoff=1").run();
    let figures = ended.figures();
    for way in ["spawn", "unpark", "timer", "yield", "gosched", "plain"] {
        figures.expect(way, ROUNDS as u64);
    }
    figures.expect_some("next_steals");
}

/// One processor whose goroutines yield to each other for ever: the global queue, the injection
/// list and the timers get their turn all the same.
#[test]
fn endless_local_work_starves_nobody() {
    let ended = Child::new(LOAD, &["endless"]).procs(1).run();
    let figures = ended.figures();
    for turn in ["global", "injected", "timer", "unparked"] {
        figures.expect(turn, 1);
    }
    figures.expect("fresh", 3000);
    figures.expect_some("fiber_waits");
    figures.expect_some("yields");
}
