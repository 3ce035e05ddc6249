//! Models of the lookout:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-protocol --release --test loom_lookout`.
//!
//! Each test names changes of the code, or of the steps around it, that it is known to catch. The
//! next slot is a number with relaxed atomics, so that nothing but the protocol makes it visible.
#![cfg(loom)]

mod model;

use self::model::explore;
use gosched_protocol::{Lookout, Searchers};
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{Relaxed, SeqCst};
use loom::sync::atomic::fence;
use loom::thread;

#[derive(Debug, Default)]
struct Watch {
    lookout: Lookout,
    searchers: Searchers,
    next: AtomicU32,
    woken: AtomicU32,
}

impl Watch {
    /// F1 to F3, and a wake-up if nobody keeps a lookout.
    fn fill(&self) {
        self.next.store(1, Relaxed); // F1
        fence(SeqCst); // F2
        if !self.lookout.is_kept() && self.searchers.summon() {
            self.woken.fetch_add(1, Relaxed);
        }
    }

    /// L1 to L5 with a sleep that is over at once; whether there was something in the slot. False if
    /// somebody else keeps a lookout.
    fn sleep_and_look(&self) -> bool {
        if !self.lookout.begin() {
            return false; // L1
        }
        self.lookout.end(); // L3, L4
        self.next.load(Relaxed) > 0 // L5
    }
}

/// Caught: a missing fence in `end`, or at F2; L5 before L3; no `end`.
#[test]
fn what_is_filled_in_is_seen_or_somebody_is_woken() {
    explore(3, || {
        let watch = Arc::new(Watch::default());
        let sleeper = {
            let watch = watch.clone();
            thread::spawn(move || watch.sleep_and_look())
        };
        watch.fill();
        let seen = sleeper.join().unwrap();
        assert!(seen || watch.woken.load(Relaxed) > 0, "left to nobody");
    });
}

/// Of two lookouts in turn, by one sleeper, the second sees what the first one was relied on for.
/// Caught: as above, in the second round alone.
#[test]
fn two_lookouts_in_turn() {
    explore(3, || {
        let watch = Arc::new(Watch::default());
        let sleeper = {
            let watch = watch.clone();
            thread::spawn(move || {
                u32::from(watch.sleep_and_look()) + u32::from(watch.sleep_and_look())
            })
        };
        watch.fill();
        let seen = sleeper.join().unwrap();
        assert!(seen + watch.woken.load(Relaxed) > 0, "left to nobody");
    });
}

/// Two searchers give up, and leave the next slot to whichever keeps a lookout; who has filled it may
/// have relied on either.
/// Caught: a missing fence in `end`, in `give_up`, or at F2; giving up after the lookout's beginning.
#[test]
fn a_searcher_may_rely_on_the_lookout_of_another() {
    explore(4, || {
        let watch = Arc::new(Watch::default());
        watch.searchers.join_for_sure();
        watch.searchers.join_for_sure();
        let give_up = |watch: Arc<Watch>| {
            thread::spawn(move || {
                watch.searchers.give_up();
                watch.sleep_and_look()
            })
        };
        let sleepers = [give_up(watch.clone()), give_up(watch.clone())];
        watch.fill();
        let seen = sleepers.map(|sleeper| sleeper.join().unwrap()).contains(&true);
        assert!(seen || watch.woken.load(Relaxed) > 0, "left to nobody");
    });
}
