//! Tests of the helper, driven by hand: no helper thread runs in this process.

use super::helper::Helper;
use super::{
    DISCARDED, HAS_HELPER, HOOK, IDLE, IDLE_MAX, REQUESTS, Refill, discard, give, given_back,
    hurry, request, set_refill_hook, surplus, take, withdraw,
};
use crate::fiber::{Fiber, Makings};
use crate::stack::Class;
use crate::tls;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// The pool is the process's: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Waits for the pool, and leaves nothing in it of what other tests put there: no two runs have the
/// same order.
fn turn() -> std::sync::MutexGuard<'static, ()> {
    tls::init(None, None);
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    HOOK.store(std::ptr::null_mut(), SeqCst);
    REQUESTS.begin_look();
    for class in Class::all() {
        REQUESTS.claim(class, usize::MAX);
        while let Some(fiber) = take(class) {
            // SAFETY: nothing runs on it.
            unsafe { discard(fiber) };
        }
        let mut idle = IDLE[class.index()].lock();
        idle.take_low();
        idle.take_lowest();
    }
    let mut helper = Helper::new(make);
    helper.reclaim_discarded();
    turn
}

fn make(makings: &mut Makings) -> Option<Fiber> {
    makings.make().ok()
}

fn one_of(class: Class) -> Fiber {
    Fiber::make(class).expect("memory")
}

fn idle(class: Class) -> usize {
    IDLE[class.index()].lock().count()
}

#[test]
fn a_request_without_memory_is_tried_again_ever_later_and_then_served() {
    static FAILURES: AtomicUsize = AtomicUsize::new(12);
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let _turn = turn();
    static COUNTING: Refill = Refill {
        is_waiting: || true,
        offer: |_, _| {
            TAKEN.fetch_add(1, SeqCst);
            false
        },
        flush: || panic!("nothing was taken"),
    };
    set_refill_hook(&COUNTING);
    let mut helper = Helper::new(|makings| {
        let left = FAILURES.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1));
        if left.is_ok() { None } else { make(makings) }
    });
    let before = idle(Class::MIB_8);
    request(Class::MIB_8);
    let mut waits = Vec::new();
    // The reserve of the default class is not to be had either, and must not make it busy.
    while TAKEN.load(SeqCst) == 0 {
        if let Some(wait) = helper.round() {
            waits.push(wait);
        }
        assert!(waits.len() < 20, "{waits:?}");
    }
    assert!(waits.first() >= Some(&Duration::from_millis(1)), "{waits:?}");
    assert!(waits.is_sorted() && waits.last() <= Some(&Duration::from_millis(500)), "{waits:?}");
    assert_eq!(idle(Class::MIB_8), before + 1, "nobody took it");
    assert_eq!(helper.round(), None, "nothing left to do");
    HOOK.store(std::ptr::null_mut(), SeqCst);
}

#[test]
fn a_fiber_that_is_given_back_serves_who_waits() {
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let _turn = turn();
    static COUNTING: Refill = Refill {
        is_waiting: || true,
        offer: |_, _| {
            TAKEN.fetch_add(1, SeqCst);
            false
        },
        flush: || panic!("nothing was taken"),
    };
    set_refill_hook(&COUNTING);
    let mut helper = Helper::new(|_| None);
    request(Class::MIB_1);
    assert!(helper.round().is_some(), "it looks again");
    // SAFETY: nothing ever ran on it.
    unsafe { give(one_of(Class::MIB_1)) };
    helper.round();
    assert_eq!(TAKEN.load(SeqCst), 1);
    HOOK.store(std::ptr::null_mut(), SeqCst);
}

#[test]
fn what_is_idle_above_the_bound_is_given_back_in_the_second_round() {
    let _turn = turn();
    let mut helper = Helper::new(make);
    let surplus = 500;
    while idle(Class::SMALL) < IDLE_MAX + surplus {
        // SAFETY: nothing ever ran on it.
        unsafe { give(one_of(Class::SMALL)) };
    }
    assert!(helper.round().is_some(), "it looks again");
    assert_eq!(idle(Class::SMALL), IDLE_MAX + surplus, "they have only just become idle");
    // Some are used in between: only what was idle all the time is surplus.
    let used: Vec<_> = (0..100).map_while(|_| take(Class::SMALL)).collect();
    for fiber in used {
        // SAFETY: nothing ever ran on it.
        unsafe { give(fiber) };
    }
    let rounds = |helper: &mut Helper, left| {
        (1..)
            .take_while(|_| {
                helper.round();
                idle(Class::SMALL) > left
            })
            .count()
    };
    assert!(rounds(&mut helper, IDLE_MAX + 100) < 5, "in steps, without pauses");
    assert_eq!(idle(Class::SMALL), IDLE_MAX + 100);
    assert!(rounds(&mut helper, IDLE_MAX) < 5);
    assert_eq!(idle(Class::SMALL), IDLE_MAX);
    assert_eq!(helper.round(), None);
}

/// A collection of a busy program leaves the pages of what is in use every moment.
#[test]
fn a_collection_takes_all_of_the_old_and_leaves_the_others() {
    let _turn = turn();
    let mut helper = Helper::new(make);
    let class = Class::SMALL;
    while idle(class) < 1_000 {
        // SAFETY: nothing ever ran on it.
        unsafe { give(one_of(class)) };
    }
    HAS_HELPER.store(true, SeqCst);
    surplus();
    let used: Vec<_> = (0..400).map_while(|_| take(class)).collect();
    // SAFETY: nothing ever ran on them.
    used.into_iter().for_each(|fiber| unsafe { give(fiber) });
    let of_this_class = idle(class) - 400;
    assert_eq!(surplus().0, of_this_class);
    let before = given_back();
    helper.collect_class(class, 400, true);
    assert_eq!(idle(class), 400);
    assert_eq!(given_back() - before, of_this_class as u64);
    helper.collect_class(class, 0, true);
    assert_eq!(idle(class), 0);
    HAS_HELPER.store(false, SeqCst);
}

/// While all are busy what is idle goes step by step, and what is used again meanwhile stays.
#[test]
fn a_busy_program_gives_back_step_by_step() {
    static IS_WAITING: AtomicBool = AtomicBool::new(false);
    static BUSY: Refill =
        Refill { is_waiting: || IS_WAITING.load(SeqCst), offer: |_, _| false, flush: || () };
    let _turn = turn();
    set_refill_hook(&BUSY);
    let mut helper = Helper::new(make);
    let class = Class::SMALL;
    while idle(class) < 2_000 {
        // SAFETY: nothing ever ran on it.
        unsafe { give(one_of(class)) };
    }
    IDLE[class.index()].lock().take_low();
    helper.collect_class(class, 100, false);
    assert_eq!(idle(class), 2_000, "not now");
    let pause = helper.round();
    assert!(pause > Some(Duration::ZERO), "it goes on by itself, later: {pause:?}");
    let first = 2_000 - idle(class);
    assert!((1..1_000).contains(&first), "{first} at once");
    let used: Vec<_> = (0..idle(class) - 500).map_while(|_| take(class)).collect();
    // SAFETY: nothing ever ran on them.
    used.into_iter().for_each(|fiber| unsafe { give(fiber) });
    let rounds = (1..).take_while(|_| helper.round().is_some()).count();
    assert!(rounds > 3, "in {rounds} rounds");
    assert_eq!(idle(class), 2_000 - first - 400, "of 500 that nobody used 100 stay");
    HOOK.store(std::ptr::null_mut(), SeqCst);
}

#[test]
fn the_reserve_is_filled_and_discarded_fibers_leave() {
    let _turn = turn();
    let mut helper = Helper::new(make);
    helper.round();
    assert!(idle(Class::DEFAULT) >= super::RESERVE);
    let fiber = take(Class::DEFAULT).expect("the reserve");
    // SAFETY: nothing runs on it.
    unsafe { discard(fiber) };
    assert_eq!(DISCARDED.lock().count(), 1);
    helper.round();
    assert_eq!(DISCARDED.lock().count(), 0);
}

/// Requesters that are busy are served at a pace, the longest-waiting one first, and at once when
/// they have nothing else to do.
#[test]
fn busy_requesters_are_served_at_a_pace() {
    static IS_WAITING: AtomicBool = AtomicBool::new(false);
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    static FLUSHED: AtomicUsize = AtomicUsize::new(0);
    static TAKING: Refill = Refill {
        is_waiting: || IS_WAITING.load(SeqCst),
        offer: |fiber, is_waiting| {
            assert_eq!(is_waiting, IS_WAITING.load(SeqCst));
            TAKEN.fetch_add(1, SeqCst);
            // SAFETY: nothing ever ran on it.
            unsafe { discard(fiber) };
            true
        },
        flush: || {
            FLUSHED.fetch_add(1, SeqCst);
        },
    };
    let _turn = turn();
    set_refill_hook(&TAKING);
    let mut helper = Helper::new(make);
    for _ in 0..200 {
        request(Class::MIB_8);
    }
    assert!(helper.round().is_some(), "it looks again by itself");
    let first = TAKEN.load(SeqCst);
    assert!((1..200).contains(&first), "{first} at once");
    let mut rounds = 1;
    while TAKEN.load(SeqCst) < 150 {
        // Without a pause most rounds serve nobody.
        helper.round();
        rounds += 1;
    }
    assert!(rounds > 3, "in {rounds} rounds");
    let before = (TAKEN.load(SeqCst), FLUSHED.load(SeqCst));
    IS_WAITING.store(true, SeqCst);
    hurry();
    helper.round();
    let left = 200 - before.0;
    assert_eq!(TAKEN.load(SeqCst), 200, "all of the {left}");
    let batches = FLUSHED.load(SeqCst) - before.1;
    assert!(batches < left, "{batches} wake-ups for {left} fibers");
    HOOK.store(std::ptr::null_mut(), SeqCst);
}

/// A request that was taken back is not served.
#[test]
fn a_request_can_be_withdrawn() {
    let _turn = turn();
    assert!(!withdraw(Class::MIB_8), "nobody asked");
    request(Class::MIB_8);
    request(Class::MIB_8);
    assert!(withdraw(Class::MIB_8));
    let before = idle(Class::MIB_8);
    Helper::new(make).round();
    assert_eq!(idle(Class::MIB_8), before + 1);
    assert!(!withdraw(Class::MIB_8), "it was served");
}
