use super::{AlarmWord, Check, Heaps, LATEST, LockedHeap, NEVER, Settled};
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::Relaxed;

/// What was done to the heaps, in order.
#[derive(Debug, Default)]
struct Log(RefCell<Vec<String>>);

struct Locked<'a>(&'a Log, NonZeroUsize);

impl<'a> Heaps for &'a Log {
    type Locked = Locked<'a>;

    fn own(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn lock(&self, heap: NonZeroUsize) -> Locked<'a> {
        Locked(self, heap)
    }
}

impl LockedHeap for Locked<'_> {
    fn push(&mut self, when: u64) {
        self.0.0.borrow_mut().push(format!("push {when} into {}", self.1));
    }

    fn advance(&mut self, when: u64) {
        self.0.0.borrow_mut().push(format!("advance to {when} in {}", self.1));
    }

    fn remove(&mut self) {
        self.0.0.borrow_mut().push(format!("remove from {}", self.1));
    }
}

const NOW: u64 = 10;

/// A call, and what it returns and leaves in each state.
type Row = (&'static str, fn(&AlarmWord) -> String, [(&'static str, u64); 3]);

/// Every pair: a line for each call, columns for NEVER, a time that has come, one that has not.
#[test]
fn every_call_in_every_state() {
    let states = [NEVER, NOW, NOW + 1];
    let table: [Row; 4] = [
        ("set", |a| a.set(7).to_string(), [("false", 7), ("true", 7), ("true", 7)]),
        (
            "set for ever",
            |a| a.set(NEVER).to_string(),
            [("false", LATEST), ("true", LATEST), ("true", LATEST)],
        ),
        ("stop", |a| a.stop().to_string(), [("false", NEVER), ("true", NEVER), ("true", NEVER)]),
        (
            "check",
            |a| format!("{:?}", a.check(NOW)),
            [("Stopped", NEVER), ("Fire", NEVER), ("Later(11)", NOW + 1)],
        ),
    ];
    for (name, call, outcomes) in table {
        for (from, (returned, to)) in states.into_iter().zip(outcomes) {
            let alarm = AlarmWord::set_for(0);
            alarm.due.store(from, Relaxed);
            assert_eq!(call(&alarm), returned, "{name} when {from}");
            assert_eq!(alarm.due.load(Relaxed), to, "{name} when {from}");
        }
    }
}

/// Due or not, in a heap or not: what settling does.
#[test]
fn settling_in_every_state() {
    let table = [
        (NEVER, 0, Settled::Kept, "", 0),
        (NEVER, 5, Settled::Removed, "remove from 5", 0),
        (7, 0, Settled::Entered, "push 7 into 1", 1),
        (7, 5, Settled::Kept, "advance to 7 in 5", 5),
    ];
    for (due, home, settled, done, after) in table {
        let alarm = AlarmWord::set_for(0);
        alarm.due.store(due, Relaxed);
        alarm.home.store(home, Relaxed);
        assert_eq!(alarm.is_at_rest(), done.is_empty());
        let log = Log::default();
        assert_eq!(alarm.settle(&&log), settled, "due {due}, home {home}");
        assert_eq!(log.0.borrow().join(", "), done, "due {due}, home {home}");
        assert_eq!(alarm.home.load(Relaxed), after, "due {due}, home {home}");
    }
}

#[test]
fn a_firing_that_comes_while_another_runs_waits_for_its_end() {
    let alarm = AlarmWord::set_for(0);
    assert_eq!(alarm.check(0), Check::Fire);
    assert!(alarm.begin_firing());
    assert!(!alarm.begin_firing());
    assert!(alarm.end_firing());
    assert!(!alarm.end_firing());
    assert!(alarm.begin_firing());
}
