//! Models of signals on their way from a handler to those who asked for them:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-os --release --test loom_signals`.
//!
//! The production files on loom's atomics and locks, with a thread for each handler and a kernel of a
//! lock, which knows what each signal does. Loom fails when the dispatcher waits for ever, and when what
//! came before a signal is read before it is visible. Each test names changes of the code that it is
//! known to catch.
#![cfg(loom)]

#[allow(dead_code, reason = "the module's")]
#[path = "../../base/tests/model/explore.rs"]
mod explore;
#[path = "../src/signal/pending.rs"]
mod pending;
#[path = "../src/signal/table.rs"]
mod table;

mod rt {
    pub(super) use loom::sync::atomic::AtomicU64;
    pub(super) use loom::sync::{Mutex, MutexGuard};

    macro_rules! const_unless_modelled {
        ($vis:vis fn $name:ident($($arg:ident: $of:ty),*) -> $ret:ty $body:block) => {
            $vis fn $name($($arg: $of),*) -> $ret $body
        };
    }
    pub(super) use const_unless_modelled;
}

/// A counter in the kernel.
mod bell {
    use loom::sync::{Condvar, Mutex};

    pub(super) struct Bell(Mutex<u64>, Condvar);

    impl Bell {
        pub(super) fn new() -> Bell {
            Bell(Mutex::new(0), Condvar::new())
        }

        pub(super) fn ring(&self) {
            *self.0.lock().unwrap() += 1;
            self.1.notify_one();
        }

        pub(super) fn wait(&self) {
            let mut rings = self.0.lock().unwrap();
            while *rings == 0 {
                rings = self.1.wait(rings).unwrap();
            }
            *rings = 0;
        }
    }
}

use bell::Bell;
use explore::explore;
use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::thread;
use pending::Pending;
use std::collections::BTreeSet;
use std::sync::Arc;
use table::{Actions, Listener, Table};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Signal(u32);

impl Signal {
    fn bit(self) -> u64 {
        1 << self.0
    }
}

const FIRST: Signal = Signal(0);
const SECOND: Signal = Signal(1);

/// Two signals at once, one of them twice: each is told, the one that came twice once or twice, and who
/// is told sees what came before. Catches: `note` that rings before it sets the bit, or is Relaxed;
/// `wait` that takes the bits before it waits, or is Relaxed.
#[test]
fn a_signal_is_told_or_merged_and_shows_what_came_before_it() {
    let waits = explore(3, || {
        let shared = Arc::new((Pending::new(Bell::new()), UnsafeCell::new(0), UnsafeCell::new(0)));
        let second = thread::spawn({
            let shared = shared.clone();
            move || {
                // SAFETY: its own until the signal.
                shared.2.with_mut(|word| unsafe { *word = 2 });
                shared.0.note(SECOND.bit());
            }
        });
        let first = thread::spawn({
            let shared = shared.clone();
            move || {
                // SAFETY: as above.
                shared.1.with_mut(|word| unsafe { *word = 1 });
                shared.0.note(FIRST.bit());
                shared.0.note(FIRST.bit());
            }
        });
        let (mut told, mut waits) = (0, 0);
        while told != FIRST.bit() | SECOND.bit() {
            let come = shared.0.wait();
            waits += 1;
            told |= come;
            if come & FIRST.bit() != 0 {
                // SAFETY: written before the signal, which loom checks.
                assert_eq!(shared.1.with(|word| unsafe { *word }), 1);
            }
            if come & SECOND.bit() != 0 {
                // SAFETY: as above.
                assert_eq!(shared.2.with(|word| unsafe { *word }), 2);
            }
        }
        first.join().unwrap();
        second.join().unwrap();
        waits
    });
    assert!(waits.contains(&1) && waits.contains(&2), "{waits:?}");
}

/// What a signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    /// What it did before the first call: ends the process, say.
    Default,
    Handler,
    Ignored,
}

/// The kernel's side: what the one signal does, and how often it was sent while it did the first.
struct Kernel(Mutex<(Action, u32)>);

impl Kernel {
    fn set(&self, action: Action) {
        self.0.lock().unwrap().0 = action;
    }

    fn action(&self) -> Action {
        self.0.lock().unwrap().0
    }

    fn defaults(&self) -> u32 {
        self.0.lock().unwrap().1
    }
}

impl Actions for Arc<Kernel> {
    fn install(&self, _: Signal) {
        self.set(Action::Handler);
    }

    fn ignore(&self, _: Signal) {
        self.set(Action::Ignored);
    }

    fn restore(&self, _: Signal) {
        self.set(Action::Default);
    }

    fn raise(&self, _: Signal) {
        let mut held = self.0.lock().unwrap();
        held.1 += u32::from(held.0 == Action::Default);
    }
}

/// A channel, with how often it was told, and whether somebody listens.
struct Ear {
    told: Mutex<u32>,
    is_open: bool,
}

impl Listener for Arc<Ear> {
    fn tell(&self, _: Signal) -> bool {
        *self.told.lock().unwrap() += u32::from(self.is_open);
        self.is_open
    }
}

fn ear(is_open: bool) -> Arc<Ear> {
    Arc::new(Ear { told: Mutex::new(0), is_open })
}

type Shared = (Table<Arc<Ear>, Arc<Kernel>>, Arc<Kernel>);

/// A table with one who has asked for the signal and does not listen any more, and the kernel.
fn with_a_deaf_one() -> Arc<Shared> {
    let kernel = Arc::new(Kernel(Mutex::new((Action::Default, 0))));
    let table = Table::new(kernel.clone());
    table.add(ear(false), &[FIRST]);
    assert_eq!(kernel.action(), Action::Handler);
    Arc::new((table, kernel))
}

/// A signal has come, for which nobody listens, and somebody asks for it: it is told, or does what it
/// did before, but not both; and the next ones are told. Catches: `deliver` that restores when it has let
/// go of the lock.
#[test]
fn who_asks_while_nobody_listens_hears_what_comes_next() {
    let outcomes = explore(3, || {
        let shared = with_a_deaf_one();
        let delivers = thread::spawn({
            let shared = shared.clone();
            move || shared.0.deliver(FIRST)
        });
        let hears = ear(true);
        shared.0.add(hears.clone(), &[FIRST]);
        assert_eq!(shared.1.action(), Action::Handler, "asked for");
        delivers.join().unwrap();
        assert_eq!(shared.1.action(), Action::Handler, "still asked for");
        let told = *hears.told.lock().unwrap();
        assert_eq!(told + shared.1.defaults(), 1);
        shared.0.deliver(FIRST);
        assert_eq!(*hears.told.lock().unwrap(), told + 1);
        told
    });
    assert_eq!(outcomes, BTreeSet::from([0, 1]));
}

/// A signal has come, for which nobody listens, and somebody says that it is to do nothing. Catches:
/// `deliver` that does not look at what is ignored, or restores when it has let go of the lock.
#[test]
fn what_is_to_be_ignored_stays_so() {
    let defaults = explore(3, || {
        let shared = with_a_deaf_one();
        let delivers = thread::spawn({
            let shared = shared.clone();
            move || shared.0.deliver(FIRST)
        });
        shared.0.ignore(&[FIRST]);
        let defaults = shared.1.defaults();
        assert_eq!(shared.1.action(), Action::Ignored);
        delivers.join().unwrap();
        assert_eq!(shared.1.action(), Action::Ignored);
        assert_eq!(shared.1.defaults(), defaults, "not after the call");
        defaults
    });
    assert_eq!(defaults, BTreeSet::from([0, 1]));
}

/// Somebody asks for a signal while somebody else says that it is to do what it did before: whoever is
/// last is obeyed.
#[test]
fn a_wish_and_a_reset_agree_with_what_the_signal_does() {
    let outcomes = explore(3, || {
        let shared = with_a_deaf_one();
        let hears = ear(true);
        let asks = thread::spawn({
            let (shared, hears) = (shared.clone(), hears.clone());
            move || shared.0.add(hears, &[FIRST])
        });
        shared.0.reset(&[FIRST]);
        asks.join().unwrap();
        let action = shared.1.action();
        shared.0.deliver(FIRST);
        let told = *hears.told.lock().unwrap();
        assert_eq!(told, u32::from(action == Action::Handler));
        action
    });
    assert_eq!(outcomes, BTreeSet::from([Action::Default, Action::Handler]));
}
