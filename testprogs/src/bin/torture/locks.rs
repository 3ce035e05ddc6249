//! Locks of std's and parking_lot's, held while the holder is stopped.

use crate::pulse;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use testprogs::random::Random;

/// Two numbers that are equal whenever nobody holds the lock.
#[derive(Default)]
struct Twins(u64, u64);

impl Twins {
    const fn new() -> Twins {
        Twins(0, 0)
    }

    fn add(&mut self, rounds: u64) {
        assert_eq!(self.0, self.1, "two hold the lock");
        self.0 += 1;
        pulse::compute(rounds, 1);
        self.1 += 1;
    }

    fn look(&self, rounds: u64) {
        let before = self.0;
        pulse::compute(rounds, 1);
        assert_eq!((self.0, self.1), (before, before), "somebody writes beside a reader");
    }
}

static STD: Mutex<Twins> = Mutex::new(Twins::new());
static STD_RW: RwLock<Twins> = RwLock::new(Twins::new());
static PARKING_LOT: parking_lot::Mutex<Twins> = parking_lot::Mutex::new(Twins::new());
static PARKING_LOT_RW: parking_lot::RwLock<Twins> = parking_lot::RwLock::new(Twins::new());
/// How often each was locked to write.
static WRITES: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

pub(crate) fn std_locks(random: &mut Random) {
    let rounds = random.below(3);
    match random.below(4) {
        0 => STD_RW.read().expect("nobody panics with it").look(rounds),
        1 => {
            WRITES[1].fetch_add(1, SeqCst);
            STD_RW.write().expect("nobody panics with it").add(rounds);
        }
        _ => {
            WRITES[0].fetch_add(1, SeqCst);
            STD.lock().expect("nobody panics with it").add(rounds);
        }
    }
}

pub(crate) fn parking_lot(random: &mut Random) {
    let rounds = random.below(3);
    match random.below(4) {
        0 => PARKING_LOT_RW.read().look(rounds),
        1 => {
            WRITES[3].fetch_add(1, SeqCst);
            PARKING_LOT_RW.write().add(rounds);
        }
        _ => {
            WRITES[2].fetch_add(1, SeqCst);
            PARKING_LOT.lock().add(rounds);
        }
    }
}

/// Each increment happened once.
pub(crate) fn check_all() {
    let std = [
        STD.lock().expect("nobody panics with it").0,
        STD_RW.read().expect("nobody panics with it").0,
    ];
    let seen = [std[0], std[1], PARKING_LOT.lock().0, PARKING_LOT_RW.read().0];
    assert_eq!(seen, WRITES.each_ref().map(|count| count.load(SeqCst)));
}

/// Two take turns through a condition variable.
pub(crate) fn condvar(random: &mut Random) {
    let turns = 2 * random.below(5);
    let shared = Arc::new((Mutex::new(0_u64), Condvar::new()));
    let theirs = shared.clone();
    let other = gosched::go(move || take_turns(&theirs, 1, turns));
    take_turns(&shared, 0, turns);
    other.join().expect("it does not panic");
    assert_eq!(*shared.0.lock().expect("nobody panics with it"), turns);
}

fn take_turns((turn, changed): &(Mutex<u64>, Condvar), parity: u64, turns: u64) {
    let mut now = turn.lock().expect("nobody panics with it");
    while *now < turns {
        if *now % 2 == parity {
            *now += 1;
            changed.notify_all();
        } else {
            now = changed.wait(now).expect("nobody panics with it");
        }
    }
}
