//! Models of the alarm: setters, stoppers and firers, with heaps behind locks as the scheduler has:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-protocol --release --test loom_alarm`.
//!
//! Each test names a change of the code that it is known to catch.
#![cfg(loom)]

mod model;

use self::model::explore;
use gosched_protocol::{AlarmWord, Check, Heaps, LockedHeap, Settled};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;
use std::num::NonZeroUsize;

/// Two processors' heaps, in which one alarm may stand.
struct World {
    alarm: AlarmWord,
    heaps: [Mutex<Option<u64>>; 2],
    fired: AtomicUsize,
    /// Firings whose function waits to be run.
    runs: AtomicUsize,
    /// What the function uses.
    function: UnsafeCell<u32>,
}

// SAFETY: loom checks each access to the function's data.
unsafe impl Sync for World {}
// SAFETY: it is a number.
unsafe impl Send for World {}

const NOW: u64 = 10;
const DUE: u64 = 5;
const LATER: u64 = 20;

/// The heaps as seen from one processor.
struct Seen<'a>(&'a World, usize);

struct Locked<'a>(MutexGuard<'a, Option<u64>>);

impl<'a> Heaps for Seen<'a> {
    type Locked = Locked<'a>;

    fn own(&self) -> NonZeroUsize {
        NonZeroUsize::MIN.saturating_add(self.1)
    }

    fn lock(&self, heap: NonZeroUsize) -> Locked<'a> {
        Locked(self.0.heaps[heap.get() - 1].lock().unwrap())
    }
}

impl LockedHeap for Locked<'_> {
    fn push(&mut self, when: u64) {
        assert_eq!(self.0.replace(when), None, "it stands there already");
    }

    fn advance(&mut self, when: u64) {
        let stands = self.0.as_mut().expect("it does not stand there");
        *stands = (*stands).min(when);
    }

    fn remove(&mut self) {
        assert!(self.0.take().is_some(), "it does not stand there");
    }
}

impl World {
    /// Set for `when`, by the processor 0.
    fn set_for(when: u64) -> Arc<World> {
        let world = Arc::new(World {
            alarm: AlarmWord::set_for(when),
            heaps: [Mutex::new(None), Mutex::new(None)],
            fired: AtomicUsize::new(0),
            runs: AtomicUsize::new(0),
            function: UnsafeCell::new(0),
        });
        world.alarm.settle_first(&Seen(&world, 0));
        world
    }

    fn settle(&self, processor: usize) -> Settled {
        self.alarm.settle(&Seen(self, processor))
    }

    fn stop(&self, processor: usize) -> bool {
        let was_set = self.alarm.stop();
        let _ = self.settle(processor);
        was_set
    }

    fn set(&self, processor: usize, when: u64) -> bool {
        let was_set = self.alarm.set(when);
        let _ = self.settle(processor);
        was_set
    }

    /// What whoever holds a heap's lock does. True: a firing begins, and is the caller's to run.
    fn run_due(&self, processor: usize) -> bool {
        let mut heap = self.heaps[processor].lock().unwrap();
        let Some(when) = *heap else { return false };
        if when > NOW {
            return false;
        }
        match self.alarm.check(NOW) {
            Check::Later(when) => {
                *heap = Some(when);
                return false;
            }
            Check::Stopped => {
                *heap = None;
                self.alarm.leave_heap();
                return false;
            }
            Check::Fire => {}
        }
        *heap = None;
        self.alarm.leave_heap();
        self.fired.fetch_add(1, Relaxed);
        self.alarm.begin_firing()
    }

    /// Runs the function, and again for each firing that came meanwhile.
    fn run_function(&self) {
        loop {
            self.function.with_mut(|calls| {
                // SAFETY: loom has just checked that nobody else has access.
                unsafe { *calls += 1 }
            });
            self.runs.fetch_add(1, Relaxed);
            if !self.alarm.end_firing() {
                break;
            }
        }
    }

    fn fire(&self) {
        for processor in 0..2 {
            if self.run_due(processor) {
                self.run_function();
            }
        }
    }

    /// Where it stands, when all is quiet.
    fn stands(&self) -> Vec<u64> {
        self.heaps.iter().filter_map(|heap| *heap.lock().unwrap()).collect()
    }

    fn fired(&self) -> usize {
        assert_eq!(self.fired.load(Relaxed), self.runs.load(Relaxed));
        self.fired.load(Relaxed)
    }
}

/// Catches: a `check` that stores instead of exchanging; a stop that does not settle.
#[test]
fn stop_against_fire() {
    explore(3, || {
        let world = World::set_for(DUE);
        let firer = thread::spawn({
            let world = Arc::clone(&world);
            move || world.fire()
        });
        let stopped = world.stop(1);
        firer.join().unwrap();
        assert_eq!(world.fired(), usize::from(!stopped));
        assert_eq!(world.stands(), []);
    });
}

/// Catches: `settle` without the second look at `home` under the lock; a firer that clears `home`
/// without the lock.
#[test]
fn set_against_fire() {
    explore(3, || {
        let world = World::set_for(DUE);
        let firer = thread::spawn({
            let world = Arc::clone(&world);
            move || world.fire()
        });
        let undone = world.set(1, LATER);
        firer.join().unwrap();
        assert_eq!(world.fired(), usize::from(!undone));
        // It stands in one heap, early at worst.
        let stands = world.stands();
        assert!(stands == [LATER] || (undone && stands == [DUE]), "{stands:?}");
        world.fire();
        assert_eq!(world.stands(), [LATER]);
        assert_eq!(world.fired(), usize::from(!undone));
    });
}

/// Catches: an `enter` that does not look at `due` again; an `is_at_rest` without the exchange.
#[test]
fn set_against_stop() {
    explore(3, || {
        let world = World::set_for(DUE);
        assert!(world.stop(0));
        let setter = thread::spawn({
            let world = Arc::clone(&world);
            move || world.set(0, DUE)
        });
        let stopped = world.stop(1);
        assert!(!setter.join().unwrap());
        assert_eq!(world.stands(), if stopped { vec![] } else { vec![DUE] });
        world.fire();
        assert_eq!(world.fired(), usize::from(!stopped));
    });
}

/// Two that enter it at once. Catches: an `enter` that stores `home`.
#[test]
fn set_against_set() {
    explore(3, || {
        let world = World::set_for(DUE);
        assert!(world.stop(0));
        let setter = thread::spawn({
            let world = Arc::clone(&world);
            move || world.set(0, DUE)
        });
        let second = world.set(1, LATER);
        let first = setter.join().unwrap();
        assert!(first != second, "one came after the other");
        let stands = world.stands();
        assert_eq!(stands.len(), 1);
        // The later setting counts.
        assert!(if first { stands == [DUE] } else { stands[0] <= LATER });
        world.fire();
        assert_eq!(world.fired(), usize::from(first));
        assert_eq!(world.stands(), if first { vec![] } else { vec![LATER] });
    });
}

/// Two firings of one function. Catches: `begin_firing` or `end_firing` without their orderings, or
/// as two accesses.
#[test]
fn a_firing_against_the_end_of_another() {
    explore(3, || {
        let world = World::set_for(DUE);
        assert!(world.run_due(0));
        assert!(!world.set(0, DUE));
        let firer = thread::spawn({
            let world = Arc::clone(&world);
            move || world.fire()
        });
        world.run_function();
        firer.join().unwrap();
        assert_eq!(world.fired(), 2);
    });
}
