//! Models of processors that wait for a machine:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-sched --release --test loom_fleet`.
//!
//! The production file on loom's atomics and locks, with numbers for processors and loom's threads for
//! machines. Loom fails when a processor waits for ever, since then its machine sleeps for ever too.
//! Each test names changes of the code that it is known to catch.
#![cfg(loom)]

#[allow(dead_code, reason = "the scheduler's")]
#[path = "../../base/tests/model/explore.rs"]
mod explore;
#[path = "../src/fleet/orders.rs"]
mod orders;

#[allow(dead_code, unused_imports, unused_macros, reason = "other models'")]
#[path = "model/rt.rs"]
mod rt;

use explore::explore;
use loom::sync::atomic::AtomicU32;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use orders::{Crew, Orders};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A processor that looks for a machine, and one that is idle.
const ORDERED: u32 = 7;
const IDLE: u32 = 1;

/// A machine that sleeps until it has a processor.
#[derive(Default)]
struct Machine(Mutex<Option<u32>>, Condvar);

impl Machine {
    fn sleep(&self) -> u32 {
        let mut handed = self.0.lock().unwrap();
        loop {
            match handed.take() {
                Some(p) => return p,
                None => handed = self.1.wait(handed).unwrap(),
            }
        }
    }
}

struct Fleet {
    orders: Orders<u32, 2>,
    sleeping: Mutex<Vec<Arc<Machine>>>,
    /// How many machines can be made.
    can_make: AtomicU32,
    /// Who has got each of the processors.
    served: Mutex<Vec<u32>>,
    /// An idle processor, for who is born and finds no order.
    idle: Mutex<Option<u32>>,
}

impl Fleet {
    fn new(can_make: u32) -> Arc<Fleet> {
        Arc::new(Fleet {
            orders: Orders::new(),
            sleeping: Mutex::default(),
            can_make: AtomicU32::new(can_make),
            served: Mutex::default(),
            idle: Mutex::default(),
        })
    }

    /// As the scheduler finds a machine for a processor.
    fn order(&self, p: u32) {
        match self.take_sleeping() {
            Some(machine) => self.send(machine, p),
            None => self.orders.push(p),
        }
    }

    /// As a machine goes to sleep.
    fn sleep(&self) {
        let machine = Arc::new(Machine::default());
        self.sleeping.lock().unwrap().push(machine.clone());
        self.orders.machine_sleeps();
        self.run(machine.sleep());
    }

    fn run(&self, p: u32) {
        let mut served = self.served.lock().unwrap();
        served.push(p);
        if p == ORDERED {
            // The model is over, which the starter sees. Nobody else calls it.
            self.orders.call_starter();
        }
    }

    fn has_served(&self, p: u32) -> bool {
        self.served.lock().unwrap().contains(&p)
    }

    /// What the starter does until `p` has got a machine. Without the second attempt after a while,
    /// which hides what is missed here.
    fn start_machines_until_served(self: &Arc<Self>, p: u32) {
        while !self.has_served(p) {
            let _ = self.orders.serve(&Starter(self.clone()));
            if !self.has_served(p) {
                self.orders.starter().sleep();
            }
        }
    }

    /// A machine's first acts.
    fn begin(&self) {
        let p = self.orders.take().or_else(|| self.idle.lock().unwrap().take());
        self.orders.born();
        if let Some(p) = p {
            self.run(p);
        }
    }

    fn take_sleeping(&self) -> Option<Arc<Machine>> {
        self.sleeping.lock().unwrap().pop()
    }

    fn send(&self, machine: Arc<Machine>, p: u32) {
        *machine.0.lock().unwrap() = Some(p);
        machine.1.notify_one();
    }
}

struct Starter(Arc<Fleet>);

impl Crew for Starter {
    type Processor = u32;
    type Machine = Arc<Machine>;
    type Refusal = ();

    fn take_sleeping(&self) -> Option<Arc<Machine>> {
        self.0.take_sleeping()
    }

    fn give_sleeping(&self, machine: Arc<Machine>) {
        self.0.sleeping.lock().unwrap().push(machine);
    }

    fn send(&self, machine: Arc<Machine>, p: u32) {
        self.0.send(machine, p);
    }

    fn make(&self) -> Result<(), ()> {
        let left = self.0.can_make.load(Relaxed).checked_sub(1).ok_or(())?;
        self.0.can_make.store(left, Relaxed);
        self.0.orders.begin_birth();
        let fleet = self.0.clone();
        thread::spawn(move || fleet.begin());
        Ok(())
    }
}

/// No machine can be made, and one goes to sleep while a processor looks for one. Catches: `push` that
/// does not wake the starter; `machine_sleeps` that does not look. (Its fence is
/// not missed here: the lock of those who sleep, which the starter takes as well, orders the looks.)
#[test]
fn an_order_and_a_machine_that_goes_to_sleep_find_each_other() {
    explore(3, || {
        let fleet = Fleet::new(0);
        let orders = thread::spawn({
            let fleet = fleet.clone();
            move || fleet.order(ORDERED)
        });
        let sleeps = thread::spawn({
            let fleet = fleet.clone();
            move || fleet.sleep()
        });
        fleet.start_machines_until_served(ORDERED);
        orders.join().unwrap();
        sleeps.join().unwrap();
        assert_eq!(*fleet.served.lock().unwrap(), [ORDERED]);
    });
}

/// A machine was made in advance, and an order comes while it is born: it takes that or an idle
/// processor, and then another one is made for the order. Catches: `born` that does not look for
/// orders, or looks before it counts, or has no fence in between.
#[test]
fn a_birth_leaves_no_order_behind() {
    let firsts = explore(3, || {
        let fleet = Fleet::new(2);
        *fleet.idle.lock().unwrap() = Some(IDLE);
        assert_eq!(Starter(fleet.clone()).make(), Ok(()));
        let orders = thread::spawn({
            let fleet = fleet.clone();
            move || fleet.order(ORDERED)
        });
        fleet.start_machines_until_served(ORDERED);
        orders.join().unwrap();
        let first = fleet.served.lock().unwrap()[0];
        first
    });
    assert_eq!(firsts, BTreeSet::from([IDLE, ORDERED]));
}

/// One order, while a machine comes back from a call and another goes to sleep: one of those two and
/// the one that is made takes it. Catches: `take` that does not say that there is one less.
#[test]
fn an_order_is_served_once() {
    let takers = explore(2, || {
        let fleet = Fleet::new(1);
        let comes_back = thread::spawn({
            let fleet = fleet.clone();
            move || {
                let p = fleet.orders.take();
                p.into_iter().for_each(|p| fleet.run(p));
                p.is_some()
            }
        });
        fleet.order(ORDERED);
        fleet.start_machines_until_served(ORDERED);
        let came_back = comes_back.join().unwrap();
        assert_eq!(*fleet.served.lock().unwrap(), [ORDERED]);
        assert!(!fleet.orders.has_any());
        came_back
    });
    assert_eq!(takers, BTreeSet::from([false, true]));
}
