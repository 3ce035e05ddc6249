//! A collection gives memory and threads back.

use crate::child::Child;

#[track_caller]
fn collects(settings: &str, caller: &str) {
    // Not by itself.
    let settings = format!("gc=off,{settings}");
    let ended = Child::new("sched_gc", &[caller]).procs(2).env("GOSCHED", &settings).run();
    let figures = ended.figures();
    println!("{}", ended.out());
    // 3,000 goroutines with 64 KiB each.
    let (before, after) = (figures.get("before"), figures.get("after"));
    assert!(figures.get("peak") > before + 180_000, "there was no peak\n{}", ended.story());
    assert!(after > before + 150_000, "nothing was left to collect\n{}", ended.story());
    // What stays is a reserve of 64, the books, and the blocks of dead threads, 8 KiB each.
    figures.expect_at_most("collected", before + 40_000);
    figures.expect("collections", 1);
    figures.expect_some("stops");
    figures.expect("sum", (0..1_000).sum());
}

#[test]
fn memory_falls_after_a_peak() {
    collects("", "goroutine");
}

#[test]
fn a_plain_thread_may_ask() {
    collects("", "plain");
}

#[test]
fn with_shared_thread_locals() {
    collects("tls=shared", "goroutine");
}

#[test]
fn blocks_of_dead_threads_stay_and_their_stacks_pages_go() {
    collects("tls=deadthread", "goroutine");
}

#[test]
fn idle_threads_end() {
    let ended = Child::new("sched_gc", &["plain"]).procs(2).env("GOSCHED", "gc=off").run();
    let figures = ended.figures();
    assert!(figures.get("threads_after") > 30, "there was no peak of threads\n{}", ended.story());
    figures.expect_at_most("threads_collected", 30);
}

#[test]
fn memory_falls_by_itself_and_stays_low() {
    let ended = Child::new("sched_gc", &["background"]).procs(2).run();
    let figures = ended.figures();
    println!("{}", ended.out());
    let before = figures.get("before");
    assert!(figures.get("peak") > before + 180_000, "there was no peak\n{}", ended.story());
    // The program waits for that, however long it takes.
    figures.expect_at_most("fallen", before + 40_000);
    figures.expect_some("background_collections");
    figures.expect_some("given_back");
    // A few goroutines after another need a few stacks.
    figures.expect_at_most("after_trickle", before + 40_000);
    figures.expect("left_in_pool", 0);
}

/// Each of 100,000 goroutines leaves a descriptor of 128 bytes, 12 MiB together, and links of its stack.
/// What stays is a page for each descriptor that somebody keeps, and a huge one, 2 MiB, wherever a page
/// of a chunk has been used again.
#[test]
fn descriptors_go_as_well_and_come_back() {
    const COUNT: u64 = 100_000;
    /// Three quarters of them.
    const LEFT_MAX_KB: u64 = COUNT * 128 / 1024 / 4 * 3;
    let ended = Child::new("sched_gc", &["shallow", &COUNT.to_string()]).procs(2);
    let ended = ended.env("GOSCHED", "gc=off").run();
    let figures = ended.figures();
    println!("{}", ended.out());
    let before = figures.get("before");
    assert!(figures.get("peak") > before + 8 * COUNT, "there was no peak\n{}", ended.story());
    figures.expect_at_most("collected", before + LEFT_MAX_KB);
    figures.expect_at_most("after_trickle", before + LEFT_MAX_KB);
    assert!(figures.get("peak_again") > before + 8 * COUNT, "{}", ended.story());
}

/// 1,000 goroutines that were 64 KiB deep and wait with some 3 KiB: three times they lose the rest.
#[test]
fn waiting_goroutines_keep_what_they_stand_on() {
    let ended =
        Child::new("sched_gc", &["waiting", "1000"]).procs(2).env("GOSCHED", "gc=off").run();
    let figures = ended.figures();
    println!("{}", ended.out());
    for turn in 1..=3 {
        let (peak, collected) =
            (figures.get(&format!("peak_{turn}")), figures.get(&format!("collected_{turn}")));
        assert!(peak > collected + 55_000, "{}", ended.story());
        assert!(collected < figures.get("before") + 25_000, "{}", ended.story());
    }
    figures.expect("sum", 3 * 300 * 1_000);
    assert!(figures.get("shrunk") >= 3_000, "{}", ended.story());
    figures.expect_some("visits");
}
