//! Models of the bell:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-protocol --release --test loom_bell`.
//!
//! Each test names changes of the code, or of the steps around it, that it is known to catch. A
//! sleeper that nobody wakes is a deadlock to loom. The queue is a number with relaxed atomics, so
//! that nothing but the protocol makes a push visible.
#![cfg(loom)]

mod model;

use self::model::explore;
use gosched_protocol::Bell;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::Relaxed;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread::{self, JoinHandle};

/// What the sleeper sleeps on; a wake-up that comes first is kept.
#[derive(Debug, Default)]
struct Bed {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Bed {
    fn sleep(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.changed.wait(woken).unwrap();
        }
        *woken = false;
    }

    fn wake(&self) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

#[derive(Debug, Default)]
struct Bedroom {
    bell: Bell,
    bed: Bed,
    queue: AtomicU32,
}

impl Bedroom {
    /// R1 to R4. Returns whether it claimed the sleeper.
    fn publish(&self) -> bool {
        self.queue.fetch_add(1, Relaxed); // R1
        let claimed = self.bell.claim(); // R2, R3
        if claimed {
            self.bed.wake(); // R4
        }
        claimed
    }

    fn has_work(&self) -> bool {
        self.queue.load(Relaxed) > 0
    }

    fn take_all(&self) -> u32 {
        self.queue.swap(0, Relaxed)
    }

    /// B1 to B5: sleeps until there is work, or something ends the sleep early.
    fn sleep(&self) {
        self.bell.announce(); // B1, B2
        if !self.has_work() {
            self.bed.sleep(); // B4
        }
        self.bell.withdraw(); // B5
    }

    /// The same with a time-out that is over at once.
    fn nap(&self) {
        self.bell.announce();
        let _ = self.has_work();
        self.bell.withdraw();
    }

    /// Takes until it has `wanted`.
    fn take(&self, wanted: u32) {
        let mut taken = self.take_all();
        while taken < wanted {
            self.sleep();
            taken += self.take_all();
        }
        assert_eq!(taken, wanted);
    }
}

fn ringers<const N: usize>(room: &Arc<Bedroom>) -> [JoinHandle<bool>; N] {
    std::array::from_fn(|_| {
        let room = room.clone();
        thread::spawn(move || room.publish())
    })
}

fn join<const N: usize>(ringers: [JoinHandle<bool>; N]) -> usize {
    ringers.into_iter().map(|ringer| usize::from(ringer.join().unwrap())).sum()
}

/// The sleeper gets all that is published. Catches: `Bell::announce` or `Bell::claim` without its
/// fence, or with it on the other side of the word; a sleeper that doesn't look after it announced
/// itself, or looks only before.
///
/// It also fails, wrongly, with a swap in `Bell::claim`: loom doesn't know that a swap which reads
/// what came before the next announcement comes before it itself.
#[test]
fn two_ringers_against_a_sleeper() {
    explore(3, || {
        let room = Arc::new(Bedroom::default());
        let ringers: [_; 2] = ringers(&room);
        room.take(2);
        join(ringers);
    });
}

/// As above, with a first sleep that is over before anybody rings, or while somebody does: its
/// wake-up may come in the second one. Catches: as the test above.
#[test]
fn ringers_against_a_sleeper_that_was_up() {
    explore(3, || {
        let room = Arc::new(Bedroom::default());
        let ringers: [_; 2] = ringers(&room);
        room.nap();
        room.take(2);
        join(ringers);
    });
}

/// One announcement, two ringers. Catches: `Bell::claim` or `Bell::withdraw` that loads and then
/// stores (the sleeper is woken twice).
#[test]
fn an_announcement_ends_once() {
    explore(3, || {
        let room = Arc::new(Bedroom::default());
        room.bell.announce();
        let ringers: [_; 2] = ringers(&room);
        let withdrawn = room.bell.withdraw();
        let claims = join(ringers);
        assert_eq!(claims + usize::from(withdrawn), 1);
    });
}

/// A sleeper that finds itself claimed doesn't wait for the wake-up. Catches: `Bell::withdraw`
/// with a relaxed swap; `Bell::claim` with its fence after the word.
#[test]
fn a_claim_shows_what_was_published() {
    explore(3, || {
        let room = Arc::new(Bedroom::default());
        let ringers: [_; 1] = ringers(&room);
        room.bell.announce();
        if !room.bell.withdraw() {
            assert!(room.has_work(), "claimed for nothing");
        }
        join(ringers);
    });
}
