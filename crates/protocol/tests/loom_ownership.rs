//! A model of the word that says whether a machine owns its processor:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-protocol --release --test loom_ownership`.
//!
//! The kernel's part, that a thread seen asleep has all its stores visible and will load anew, is a
//! fence on either side here; `tso_ownership` enumerates the steps with a store buffer instead.
#![cfg(loom)]

use gosched_protocol::Ownership;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use loom::thread;

const P: u32 = 5;

#[derive(Default)]
struct Machine {
    word: Ownership,
    in_runtime: AtomicBool,
    leaves: AtomicU32,
    asleep: AtomicBool,
    /// How many hold the processor.
    holders: AtomicU32,
}

impl Machine {
    fn new() -> Arc<Machine> {
        let machine = Machine::default();
        machine.holders.store(1, Relaxed);
        Arc::new(machine)
    }

    /// E1 to E3. Whether the processor is still there.
    fn enter(&self) -> bool {
        self.in_runtime.store(true, Relaxed);
        self.word.is_undisturbed() || self.word.keep()
    }

    fn leave(&self) {
        self.leaves.store(self.leaves.load(Relaxed) + 1, Relaxed);
        self.in_runtime.store(false, Release);
    }

    fn sleep(&self) {
        fence(SeqCst);
        self.asleep.store(true, SeqCst);
    }

    fn wake(&self) {
        self.asleep.store(false, SeqCst);
        fence(SeqCst);
    }

    /// Uses the processor, which one at a time may.
    fn use_processor(&self) {
        assert_eq!(self.holders.load(Relaxed), 1, "two hold the processor, or nobody does");
    }

    /// R1 to R4, after a first look that saw `leaves`.
    fn revoke(&self, leaves: u32) -> bool {
        if !self.word.request() {
            return false;
        }
        fence(SeqCst);
        let asleep = self.asleep.load(SeqCst);
        fence(SeqCst);
        let same = self.leaves.load(Acquire) == leaves && !self.in_runtime.load(Acquire);
        if !(asleep && same) {
            self.word.withdraw();
            return false;
        }
        self.word.take()
    }
}

/// A machine that sleeps outside, comes back, and works inside, against one revoker: the processor
/// is with one of them, and with the machine whenever it believes so.
#[test]
fn a_sleeper_against_its_revoker() {
    loom::model(|| {
        let machine = Machine::new();
        let revoker = thread::spawn({
            let machine = machine.clone();
            move || {
                let leaves = machine.leaves.load(Acquire);
                let outside = !machine.in_runtime.load(Acquire);
                outside && machine.revoke(leaves)
            }
        });
        machine.sleep();
        machine.wake();
        let kept = machine.enter();
        if kept {
            machine.use_processor();
            machine.leave();
            // Once more, so that the count of leaves matters.
            machine.sleep();
            machine.wake();
            let kept = machine.enter();
            assert_eq!(revoker.join().unwrap(), !kept, "lost, or owned twice");
        } else {
            assert!(revoker.join().unwrap(), "lost to nobody");
        }
    });
}

/// A declared call against two that want the processor: the one who gets it is told which one it
/// is, and only one of the three has it.
#[test]
fn a_call_against_two_takers() {
    loom::model(|| {
        let machine = Machine::new();
        machine.word.begin_call(P);
        let takers = [(); 2].map(|()| {
            let machine = machine.clone();
            thread::spawn(move || machine.word.take_from_call())
        });
        let kept = machine.word.end_call(P);
        let taken: Vec<_> = takers.into_iter().filter_map(|t| t.join().unwrap()).collect();
        assert_eq!(usize::from(kept) + taken.len(), 1);
        assert!(taken.iter().all(|p| *p == P));
    });
}

/// The machine loses its processor in one call and begins the next with another: whoever takes
/// that one is told so, whenever it looked.
#[test]
fn a_taker_is_told_which_processor_it_took() {
    loom::model(|| {
        let machine = Machine::new();
        machine.word.begin_call(P);
        let taker = thread::spawn({
            let machine = machine.clone();
            move || machine.word.take_from_call()
        });
        if machine.word.end_call(P) {
            machine.word.begin_call(P + 1);
            let kept = machine.word.end_call(P + 1);
            assert_eq!(taker.join().unwrap(), (!kept).then_some(P + 1));
        } else {
            machine.word.regained();
            machine.word.begin_call(P + 1);
            assert_eq!(taker.join().unwrap(), Some(P));
            assert!(machine.word.end_call(P + 1));
        }
    });
}
