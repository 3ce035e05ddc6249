//! Tests of the lock.

use super::Lock;
use std::thread;

#[test]
fn counts_exactly_under_contention() {
    const EACH: u64 = if cfg!(miri) { 50 } else { 50_000 };
    let lock = Lock::new(0_u64);
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..EACH {
                    *lock.lock() += 1;
                }
            });
        }
    });
    assert_eq!(*lock.lock(), 4 * EACH);
}

#[test]
fn try_lock_fails_while_held() {
    let lock = Lock::new(());
    let held = lock.lock();
    assert!(lock.try_lock().is_none());
    drop(held);
    assert!(lock.try_lock().is_some());
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no kernel")]
fn counts_exactly_with_the_light_barrier() {
    crate::barrier::init();
    if !crate::barrier::is_asymmetric() {
        println!("SKIPPED: the kernel has no membarrier(2), or a filter forbids it");
        return;
    }
    counts_exactly_under_contention();
}

/// A holder that gives the lock back while a waiter goes to sleep, on a CPU with a store buffer.
mod model {
    use std::collections::HashSet;

    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    enum Holder {
        Holds,
        /// After U1; the store may still be in the buffer.
        Released,
        /// After U2, which found a sleeper.
        Waking,
        Done,
    }

    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    enum Waiter {
        Arrives,
        /// After W1.
        Counted,
        /// After W2, or back from sleep.
        Looks,
        /// After W3 found it held.
        GoesToSleep,
        Asleep,
        Has,
    }

    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    struct State {
        held: bool,
        /// The holder's store of FREE, not visible yet.
        buffered: bool,
        sleepers: bool,
        holder: Holder,
        waiter: Waiter,
    }

    impl State {
        fn with(mut self, change: impl FnOnce(&mut State)) -> State {
            change(&mut self);
            self
        }

        fn drain(&mut self) {
            if std::mem::take(&mut self.buffered) {
                self.held = false;
            }
        }

        fn successors(self, with_barrier: bool) -> Vec<State> {
            let mut next = Vec::new();
            if self.buffered {
                next.push(self.with(State::drain));
            }
            next.extend(match self.holder {
                Holder::Holds => Some(self.with(|s| {
                    s.buffered = true;
                    s.holder = Holder::Released;
                })),
                Holder::Released => Some(self.with(|s| {
                    s.holder = if s.sleepers { Holder::Waking } else { Holder::Done };
                })),
                // A system call: the buffer is empty before the kernel looks for sleepers.
                Holder::Waking => Some(self.with(|s| {
                    s.drain();
                    if s.waiter == Waiter::Asleep {
                        s.waiter = Waiter::Looks;
                    }
                    s.holder = Holder::Done;
                })),
                Holder::Done => None,
            });
            next.extend(match self.waiter {
                Waiter::Arrives => Some(self.with(|s| {
                    s.sleepers = true;
                    s.waiter = Waiter::Counted;
                })),
                Waiter::Counted => Some(self.with(|s| {
                    if with_barrier {
                        s.drain();
                    }
                    s.waiter = Waiter::Looks;
                })),
                Waiter::Looks => Some(self.with(|s| {
                    s.waiter = if s.held { Waiter::GoesToSleep } else { Waiter::Has };
                })),
                // The kernel compares and puts it to sleep in one step.
                Waiter::GoesToSleep => Some(self.with(|s| {
                    s.waiter = if s.held { Waiter::Asleep } else { Waiter::Looks };
                })),
                Waiter::Asleep | Waiter::Has => None,
            });
            next
        }
    }

    /// Whether some order of steps leaves the waiter asleep for good. Also how many states there
    /// are.
    fn explore(with_barrier: bool) -> (bool, usize) {
        let first = State {
            held: true,
            buffered: false,
            sleepers: false,
            holder: Holder::Holds,
            waiter: Waiter::Arrives,
        };
        let (mut seen, mut open) = (HashSet::from([first]), vec![first]);
        let mut is_lost = false;
        while let Some(state) = open.pop() {
            let next = state.successors(with_barrier);
            is_lost |= next.is_empty() && state.waiter != Waiter::Has;
            open.extend(next.into_iter().filter(|state| seen.insert(*state)));
        }
        (is_lost, seen.len())
    }

    #[test]
    #[cfg_attr(miri, ignore = "a search, with nothing for Miri to see")]
    fn no_waiter_sleeps_through_a_release() {
        let (is_lost, states) = explore(true);
        assert!(!is_lost);
        assert!(states > 20, "{states} states are too few to mean anything");
    }

    #[test]
    #[cfg_attr(miri, ignore = "a search, with nothing for Miri to see")]
    fn without_the_barrier_one_does() {
        assert!(explore(false).0);
    }
}
