//! Models of the turns of those who wait for a file:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-net --release --test loom_turn`.
//!
//! The production file on loom's cells and locks, and on loom's threads instead of goroutines. Loom
//! fails when somebody waits for ever, and when two use a node or the file at once; a waiter that is
//! woken twice fails an assertion. Each test names changes of the code that it is known to catch.
#![cfg(loom)]

#[path = "../../sched/tests/model/rt.rs"]
mod base;
#[allow(unreachable_pub, dead_code, reason = "the scheduler's")]
#[path = "../../sched/src/cancel.rs"]
mod cancel;
#[allow(unused_imports, unused_macros, dead_code, reason = "made for the scheduler's models")]
#[path = "../../base/tests/model/explore.rs"]
mod explore;
#[allow(dead_code, reason = "the sockets'")]
#[path = "../src/turn.rs"]
mod turn;
#[allow(dead_code, reason = "made for the scheduler's models")]
#[path = "../../sched/tests/model/wait.rs"]
mod wait;

/// All that the production files name.
mod rt {
    pub(crate) use crate::base::{AtomicBool, Cell, Lock, const_unless_modelled};
    pub(crate) use crate::cancel::{Cancellation, block_until_unless};
    pub(crate) use crate::critical::Critical;
    pub(crate) use crate::reason::WaitReason;
    pub(crate) use crate::wait::{Waiter, block, block_until};
}

mod critical {
    use crate::wait::Waiter;

    pub(crate) struct Critical;

    impl Critical {
        pub(crate) fn enter() -> Critical {
            Critical
        }

        pub(crate) fn wake(&self, waiter: Waiter) {
            waiter.wake();
        }
    }
}

mod reason {
    pub(crate) enum WaitReason {
        IoWait,
    }
}

use explore::explore;
use loom::cell::UnsafeCell;
use loom::thread;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use turn::{Taken, Turn};

/// A file that one may use at a time.
struct File {
    turn: Turn,
    uses: UnsafeCell<u32>,
}

impl File {
    fn new() -> Arc<File> {
        Arc::new(File { turn: Turn::new(), uses: UnsafeCell::new(0) })
    }

    /// Uses it if the turn comes.
    fn act(&self, deadline: Option<Instant>) -> Taken {
        let taken = self.turn.take(deadline, None);
        if matches!(taken, Taken::AtOnce | Taken::AfterAnother) {
            // SAFETY: one at a time, which loom checks.
            self.uses.with_mut(|uses| unsafe { *uses += 1 });
            self.turn.give();
        }
        taken
    }
}

/// Catches: `give` that frees the turn although it hands it over (two at a time); a commit that does
/// not look at `taken` again (it waits for ever).
#[test]
fn one_has_the_turn_at_a_time_and_all_get_it() {
    let outcomes = explore(3, || {
        let file = File::new();
        let others = [0, 1].map(|_| {
            let file = file.clone();
            thread::spawn(move || file.act(None))
        });
        let mut waited = usize::from(file.act(None) == Taken::AfterAnother);
        for other in others {
            waited += usize::from(other.join().unwrap() == Taken::AfterAnother);
        }
        assert_eq!(file.act(None), Taken::AtOnce, "it is free");
        // SAFETY: nobody else is left.
        assert_eq!(file.uses.with(|uses| unsafe { *uses }), 4);
        waited
    });
    assert_eq!(outcomes, BTreeSet::from([0, 1, 2]));
}

/// The time is over while the turn comes: one of the two, and the turn is not lost. Catches: `unlink`
/// that leaves the node in the queue, or its `last`, or always says that it was there.
#[test]
fn a_deadline_races_with_the_turn() {
    let outcomes = explore(3, || {
        let file = File::new();
        assert_eq!(file.turn.take(None, None), Taken::AtOnce);
        let _passes = wait::let_time_pass();
        let late = thread::spawn({
            let file = file.clone();
            move || file.act(Some(Instant::now()))
        });
        file.turn.give();
        let taken = late.join().unwrap();
        assert_eq!(file.turn.take(None, None), Taken::AtOnce, "it is free");
        // The next one finds a queue that is in order.
        let next = thread::spawn({
            let file = file.clone();
            move || file.act(None)
        });
        file.turn.give();
        next.join().unwrap();
        taken as u8
    });
    let all = [Taken::AtOnce, Taken::AfterAnother, Taken::TooLate].map(|taken| taken as u8);
    assert_eq!(outcomes, BTreeSet::from(all));
}

/// A cancellation while the turn comes: one of the two, and the turn is not lost.
#[test]
fn a_cancellation_races_with_the_turn() {
    let outcomes = explore(3, || {
        let file = File::new();
        assert_eq!(file.turn.take(None, None), Taken::AtOnce);
        let cancellation = Arc::new(cancel::Cancellation::new());
        let waits = thread::spawn({
            let (file, cancellation) = (file.clone(), cancellation.clone());
            move || {
                let taken = file.turn.take(None, Some(&cancellation));
                if matches!(taken, Taken::AtOnce | Taken::AfterAnother) {
                    file.turn.give();
                }
                taken
            }
        });
        let cancels = thread::spawn(move || cancellation.cancel());
        file.turn.give();
        cancels.join().unwrap();
        let taken = waits.join().unwrap();
        assert_eq!(file.turn.take(None, None), Taken::AtOnce, "it is free");
        taken as u8
    });
    let all = [Taken::AtOnce, Taken::AfterAnother, Taken::TooLate].map(|taken| taken as u8);
    assert_eq!(outcomes, BTreeSet::from(all));
}

/// A deadline is changed, or the file closed, while the turn is handed on: who is sent back does not
/// have it. Catches: `look_again` that counts those whom it sends back as holders (nobody gets it).
#[test]
fn who_looks_again_does_not_keep_the_turn() {
    let outcomes = explore(3, || {
        let file = File::new();
        assert_eq!(file.turn.take(None, None), Taken::AtOnce);
        let waits = thread::spawn({
            let file = file.clone();
            move || file.act(None)
        });
        let changes = thread::spawn({
            let file = file.clone();
            move || file.turn.look_again()
        });
        file.turn.give();
        changes.join().unwrap();
        let taken = waits.join().unwrap();
        assert_eq!(file.turn.take(None, None), Taken::AtOnce, "it is free");
        taken as u8
    });
    let all = [Taken::AtOnce, Taken::AfterAnother, Taken::LookAgain].map(|taken| taken as u8);
    assert_eq!(outcomes, BTreeSet::from(all));
}
