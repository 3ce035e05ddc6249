//! The checker rejects histories that are broken: one for each way to break them.

use super::Kind::{self, *};
use super::Source;
use super::checker::check;
use super::recorder::{NO_PROCESSOR, OUTSIDE, Record};

const M0: u32 = 0;
const M1: u32 = 1;
const THREAD: u32 = OUTSIDE | 7;
/// The one that makes the processors.
const STARTER: u32 = OUTSIDE | 8;

fn plain(actor: u32, kind: Kind, detail: u32) -> Record {
    Record { kind, actor, p: NO_PROCESSOR, g: 0, detail }
}

fn of_g(actor: u32, g: u64, kind: Kind) -> Record {
    Record { kind, actor, p: NO_PROCESSOR, g, detail: 0 }
}

fn of_p(actor: u32, p: u32, kind: Kind) -> Record {
    Record { kind, actor, p, g: 0, detail: 0 }
}

fn into_next(actor: u32, p: u32, g: u64) -> Record {
    Record { kind: Next, actor, p, g, detail: 0 }
}

fn run(actor: u32, p: u32, g: u64, round: u32) -> Record {
    Record { kind: Run, actor, p, g, detail: round }
}

/// A search in which the last of `sources` has `g`; 0 for none.
fn search(actor: u32, tick: u32, sources: &[Source], g: u64) -> Vec<Record> {
    let mut records = vec![plain(actor, Search, tick)];
    records.extend(sources.iter().map(|s| plain(actor, Tried, *s as u32)));
    if let Some(last) = records.last_mut() {
        last.g = g;
    }
    records
}

use Source::{
    Global, GlobalFirst, Local, Network, NetworkFirst, RingFirst, RingPassed, Steal, Timers, Urgent,
};

const ALL: [Source; 6] = [Timers, Urgent, Local, Global, Network, Steal];

/// Two processors, two machines, two goroutines; a bit of everything.
fn valid() -> Vec<Record> {
    let mut h = vec![of_p(STARTER, 0, Idle), of_p(STARTER, 1, Idle), plain(STARTER, Done, 0)];
    // A plain thread makes the first goroutine, and there is no machine in the poller yet.
    h.extend([of_p(STARTER, 0, Transit), of_g(THREAD, 1, Created)]);
    h.extend([plain(THREAD, Ringing, 0), plain(THREAD, Rung, 0), plain(THREAD, Done, 0)]);
    h.push(of_p(M0, 0, Acquired));
    h.extend(search(M0, 0, &[Timers, Urgent, Local, Global], 1));
    h.extend([run(M0, 0, 1, 1), plain(M0, Left, 0)]);
    // It makes another one, which is stolen.
    h.extend([of_g(M0, 2, Created), plain(M0, Considered, 0)]);
    h.extend([of_p(M0, 1, Transit), plain(M0, Left, 0)]);
    h.push(of_p(M1, 1, Acquired));
    h.extend(search(M1, 0, &ALL, 2));
    h.extend([run(M1, 1, 2, 1), plain(M1, Left, 0)]);
    h.extend([of_g(M1, 2, EnterCall), plain(M1, Left, 0)]);
    h.extend([of_g(M1, 2, ExitCall), plain(M1, Left, 0)]);
    // The first one waits, and its machine sleeps in the poller.
    h.push(of_g(M0, 1, Park));
    h.extend(search(M0, 1, &ALL, 0));
    h.extend([of_p(M0, 0, Idle), plain(M0, Sleep, super::SLEEP_IN_POLLER)]);
    // A plain thread wakes it.
    h.extend([of_g(THREAD, 1, Ready), plain(THREAD, Ringing, 0), plain(THREAD, Rung, 1)]);
    h.extend([plain(THREAD, Done, 0), plain(M0, Awake, 0), plain(M0, PollEnd, 1)]);
    h.extend([of_p(M0, 0, Transit), of_p(M0, 0, Acquired)]);
    h.extend(search(M0, 1, &[Timers, Urgent, Local, Global], 1));
    h.extend([run(M0, 0, 1, 2), plain(M0, Left, 0)]);
    // The second one gives way, and goes on at once; then it ends.
    h.extend([of_g(M1, 2, Yielded), run(M1, 1, 2, 2), plain(M1, Left, 0), of_g(M1, 2, Exit)]);
    h.extend(search(M1, 2, &ALL, 0));
    h.extend([of_p(M1, 1, Idle), plain(M1, Sleep, 0)]);
    // The global queue's round; what gave way is wanted by nobody but its own machine.
    h.push(of_g(M0, 1, Yielded));
    let round = [Timers, Urgent, RingPassed, GlobalFirst, NetworkFirst, RingFirst];
    h.extend(search(M0, 60, &round, 1));
    h.extend([run(M0, 0, 1, 61), plain(M0, Left, 0), of_g(M0, 1, Exit)]);
    h.extend(search(M0, 61, &ALL, 0));
    h.extend([of_p(M0, 0, Idle), plain(M0, Sleep, super::SLEEP_IN_POLLER)]);
    h
}

/// Where `record` is for the `nth` time.
#[track_caller]
fn find(h: &[Record], record: Record, nth: usize) -> usize {
    let mut all = h.iter().enumerate().filter(|(_, r)| **r == record);
    all.nth(nth).expect("the valid history has it").0
}

#[track_caller]
fn remove(record: Record, nth: usize) -> Vec<Record> {
    let mut h = valid();
    let at = find(&h, record, nth);
    h.remove(at);
    h
}

#[track_caller]
fn insert_after(record: Record, nth: usize, new: &[Record]) -> Vec<Record> {
    let mut h = valid();
    let at = find(&h, record, nth) + 1;
    h.splice(at..at, new.iter().copied());
    h
}

#[track_caller]
fn replace(record: Record, nth: usize, new: Record) -> Vec<Record> {
    let mut h = valid();
    let at = find(&h, record, nth);
    h[at] = new;
    h
}

#[track_caller]
fn rejects(promise: &str, h: &[Record]) {
    let broken = check(h, 2).expect_err("it is broken");
    assert_eq!(broken.promise, promise, "{broken}");
}

#[test]
fn a_valid_history_passes() {
    let summary = check(&valid(), 2).unwrap_or_else(|broken| panic!("{broken}"));
    assert_eq!((summary.created, summary.runs, summary.direct_runs), (2, 5, 1));
    assert_eq!((summary.searches, summary.fairness_searches), (7, 1));
    assert_eq!((summary.found_stolen, summary.found_ring_first), (1, 1));
    assert_eq!((summary.found_nothing, summary.most_running), (3, 2));
    assert!(summary.coexisting > 0);
}

#[test]
fn p1_woken_twice() {
    let ready = of_g(THREAD, 1, Ready);
    rejects("P1", &insert_after(ready, 0, &[ready]));
}

#[test]
fn p1_starts_without_being_woken() {
    rejects("P1", &remove(of_g(THREAD, 1, Ready), 0));
}

#[test]
fn p1_runs_on_two_machines() {
    rejects("P1", &insert_after(run(M1, 1, 2, 1), 0, &[run(M1, 1, 1, 2)]));
    let h = replace(run(M1, 1, 2, 1), 0, run(M1, 1, 1, 1));
    rejects("P1", &h);
}

#[test]
fn p1_runs_twice_on_one_machine() {
    rejects("P1", &insert_after(run(M0, 0, 1, 1), 0, &[run(M0, 0, 1, 2)]));
}

#[test]
fn p1_parked_by_another_machine() {
    rejects("P1", &replace(of_g(M0, 1, Park), 0, of_g(M1, 1, Park)));
}

#[test]
fn p1_two_on_one_machine() {
    let made = [of_g(M0, 3, Created), run(M0, 0, 3, 2)];
    rejects("P1", &insert_after(run(M0, 0, 1, 1), 0, &made));
}

#[test]
fn p1_made_twice() {
    rejects("P1", &insert_after(of_g(M0, 2, Created), 0, &[of_g(M0, 2, Created)]));
}

#[test]
fn p1_ends_twice() {
    rejects("P1", &insert_after(of_g(M1, 2, Exit), 0, &[of_g(M1, 2, Exit)]));
}

#[test]
fn p1_parks_in_a_call() {
    rejects("P1", &remove(of_g(M1, 2, ExitCall), 0));
}

#[test]
fn p2_two_machines_with_one_processor() {
    rejects("P2", &replace(of_p(M1, 1, Acquired), 0, of_p(M1, 0, Acquired)));
}

#[test]
fn p2_a_machine_with_two_processors() {
    rejects("P2", &insert_after(of_p(M0, 1, Transit), 0, &[of_p(M0, 1, Acquired)]));
}

#[test]
fn p2_runs_without_a_processor() {
    rejects("P2", &remove(of_p(M1, 1, Acquired), 0));
}

#[test]
fn p2_runs_after_its_processor_was_taken() {
    let taken = of_p(THREAD, 1, Transit);
    rejects("P2", &insert_after(of_g(M1, 2, Yielded), 0, &[taken]));
}

#[test]
fn p2_another_gives_the_processor_away() {
    rejects("P2", &replace(of_p(M0, 0, Idle), 0, of_p(M1, 0, Idle)));
}

#[test]
fn p3_more_run_than_there_are_processors() {
    let broken = check(&valid(), 1).expect_err("two ran at once");
    assert_eq!(broken.promise, "P3", "{broken}");
}

#[test]
fn p4_another_order() {
    let mut h = valid();
    let global = find(&h, plain(M0, Tried, Global as u32), 0);
    h.swap(global - 1, global - 2);
    rejects("P4", &h);
}

#[test]
fn p4_a_source_is_left_out() {
    rejects("P4", &remove(plain(M1, Tried, Local as u32), 0));
}

#[test]
fn p4_goes_on_after_it_has_found() {
    let more = plain(M1, Tried, Steal as u32);
    let found = Record { g: 2, ..more };
    rejects("P4", &insert_after(found, 0, &[more]));
}

#[test]
fn p4_runs_another_one() {
    let made = of_g(M0, 3, Created);
    let mut h = insert_after(of_g(M0, 2, Created), 0, &[made]);
    let at = find(&h, run(M1, 1, 2, 1), 0);
    h[at] = run(M1, 1, 3, 1);
    rejects("P4", &h);
}

#[test]
fn p4_sleeps_before_it_has_looked_everywhere() {
    rejects("P4", &remove(plain(M0, Tried, Steal as u32), 0));
}

#[test]
fn p4_skips_the_global_queue_in_its_round() {
    let sources = [RingPassed, GlobalFirst, NetworkFirst, RingFirst];
    let mut h = valid();
    h.retain(|r| !(r.kind == Tried && sources.iter().any(|s| *s as u32 == r.detail)));
    rejects("P4", &h);
}

#[test]
fn p4_switches_directly_in_the_global_queues_round() {
    rejects("P4", &replace(run(M1, 1, 2, 2), 0, run(M1, 1, 2, 122)));
}

#[test]
fn p4_looks_without_a_search() {
    rejects("P4", &remove(plain(M0, Search, 61), 0));
}

#[test]
fn p5_a_machine_forgets_to_wake() {
    // The second processor stays idle, and nobody comes for the second goroutine.
    let mut h = valid();
    let at = find(&h, of_p(M0, 1, Transit), 0);
    h.remove(at);
    rejects("P5", &h);
}

#[test]
fn p5_a_plain_thread_forgets_to_ring() {
    let mut h = valid();
    let at = find(&h, plain(THREAD, Rung, 1), 0);
    h.drain(at - 1..=at);
    rejects("P5", &h);
}

#[test]
fn p5_the_poller_was_woken_and_sleeps_again() {
    let mut h = valid();
    let at = find(&h, plain(M0, PollEnd, 1), 0) + 1;
    h.splice(at..at + 2, [plain(M0, Sleep, super::SLEEP_IN_POLLER)]);
    rejects("P5", &h);
}

#[test]
fn p5_the_bell_was_rung_for_an_earlier_poll() {
    let mut h = valid();
    let at = find(&h, plain(THREAD, Rung, 1), 0);
    // The poll had ended before, and the machine went back to sleep only after the bell.
    let again = [plain(M0, Awake, 0), plain(M0, PollEnd, 1)];
    h.splice(at..at, again);
    let at = find(&h, plain(THREAD, Done, 0), 1) + 1;
    h.splice(at..at, [plain(M0, Sleep, super::SLEEP_IN_POLLER)]);
    rejects("P5", &h);
}

/// The ringer began while an earlier poll was on, and has claimed the next one.
#[test]
fn a_bell_may_be_claimed_late() {
    let mut h = valid();
    let at = find(&h, plain(THREAD, Rung, 1), 0);
    let sleep = plain(M0, Sleep, super::SLEEP_IN_POLLER);
    h[at] = plain(THREAD, Rung, 2);
    h[at + 3] = plain(M0, PollEnd, 2);
    h.splice(at..at, [plain(M0, Awake, 0), plain(M0, PollEnd, 1), sleep]);
    check(&h, 2).unwrap_or_else(|broken| panic!("{broken}"));
}

/// Who finds the bell claimed relies on the one that has claimed it and has not come to ring yet.
#[test]
fn a_bell_may_be_on_its_way() {
    const OTHER: u32 = OUTSIDE | 9;
    let mut h = valid();
    let at = find(&h, plain(THREAD, Ringing, 0), 1);
    let done = find(&h, plain(THREAD, Done, 0), 1);
    h[at + 1] = plain(THREAD, Rung, 0);
    h.splice(done + 1..done + 1, [plain(OTHER, Rung, 1)]);
    h.splice(at..at, [plain(OTHER, Ringing, 0)]);
    check(&h, 2).unwrap_or_else(|broken| panic!("{broken}"));
}

/// What is in a next slot may be left to a machine that keeps a lookout.
#[test]
fn a_next_slot_may_wait_for_a_lookout() {
    check_but_for_the_end(&left_beside_a_lookout());
}

#[test]
fn p5_the_ring_waits_for_a_lookout() {
    // Another one takes the slot, so that the first one is in the ring.
    let mut h = left_beside_a_lookout();
    h.insert(h.len() - 2, into_next(M1, 1, 9));
    rejects("P5", &h);
}

#[test]
fn p5_a_lookout_is_over() {
    let mut h = left_beside_a_lookout();
    h.extend([plain(M0, Awake, 0), plain(M0, Sleep, 0)]);
    rejects("P5", &h);
}

#[test]
fn p5_a_next_slot_waits_for_nobody() {
    let mut h = left_beside_a_lookout();
    let at = find(&h, plain(M0, Lookout, 0), 0);
    h.remove(at);
    rejects("P5", &h);
}

/// Goroutine 2 is in the next slot of the second processor, the first one is idle, and its machine
/// keeps a lookout.
fn left_beside_a_lookout() -> Vec<Record> {
    let sleep = plain(M0, Sleep, super::SLEEP_IN_POLLER);
    let mut h = valid();
    h.truncate(find(&h, sleep, 0));
    h.extend([plain(M0, Lookout, 0), sleep]);
    h.extend([of_g(M1, 2, Yielded), into_next(M1, 1, 2)]);
    h.extend([plain(M1, Considered, 0), plain(M1, Left, 0)]);
    h
}

/// All is well but that not everything has ended.
fn check_but_for_the_end(h: &[Record]) {
    let broken = check(h, 2).expect_err("some are left");
    assert_eq!(broken.promise, "P7", "{broken}");
}

#[test]
fn p5_a_thread_keeps_a_goroutine_in_its_hands() {
    // While it holds it all is well; that it has finished says that it does not.
    let sleep = plain(M0, Sleep, super::SLEEP_IN_POLLER);
    let mut h = valid();
    h.truncate(find(&h, sleep, 0) + 1);
    h.extend([plain(STARTER, Begun, 0), of_g(M1, 2, Yielded)]);
    h.extend([plain(M1, Considered, 0), plain(M1, Left, 0)]);
    assert_eq!(check(&h, 2).expect_err("it is left").promise, "P7");
    h.push(plain(STARTER, Finished, 0));
    rejects("P5", &h);
}

#[test]
fn p6_makes_one_and_thinks_of_nobody() {
    rejects("P6", &remove(plain(M0, Considered, 0), 0));
}

#[test]
fn p6_moves_some_and_thinks_of_nobody() {
    rejects("P6", &insert_after(run(M1, 1, 2, 1), 0, &[plain(M1, Moved, 0)]));
}

#[test]
fn p6_thinks_of_others_too_early() {
    let first = [plain(M0, Considered, 0), of_g(M0, 3, Created)];
    let mut h = insert_after(of_g(M0, 2, Created), 0, &first);
    let at = find(&h, plain(M0, Considered, 0), 1);
    h.remove(at);
    rejects("P6", &h);
}

#[test]
fn p7_one_never_ends() {
    let mut h = valid();
    let at = find(&h, of_g(M0, 1, Exit), 0);
    h.truncate(at);
    rejects("P7", &h);
}

#[test]
fn p7_one_waits_for_ever() {
    let mut h = valid();
    let at = find(&h, of_g(THREAD, 1, Ready), 0);
    h.truncate(at);
    // The other one ends.
    h.push(of_g(M1, 2, Exit));
    rejects("P7", &h);
}
