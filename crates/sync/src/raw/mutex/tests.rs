//! The asymmetric unlock: on real CPUs, and on made-up ones with store buffers, which loom's fences can't
//! show.
//!
//! There every order of steps of three threads, two of which come once and one twice, one of which may give its
//! wait up. A step is one access to memory, and all that is done with the queue's lock but for W1, W2
//! and W3. WOKEN and STARVING are left out: whoever is woken comes again as if it were new.

use super::{CALM, FREE, RawMutex, SYMMETRIC, WAITING};
use gosched_base::barrier;
use std::collections::HashSet;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;

/// Unlocks so often beside nobody that the next one is a plain store.
fn calm_down(mutex: &RawMutex) {
    for _ in 0..=CALM {
        mutex.lock();
        mutex.unlock();
    }
    assert_eq!(mutex.flags.load(Relaxed), 0);
}

/// A waiter comes to an asymmetric mutex at any moment of an unlock, hundreds of times. One that
/// slept through it would hang.
#[test]
#[cfg_attr(miri, ignore = "Miri has no kernel")]
fn waiters_come_to_a_plain_unlock() {
    const ENOUGH: u32 = 200;
    barrier::init();
    if !barrier::is_asymmetric() {
        println!("SKIPPED: the kernel has no membarrier(2), or a filter forbids it");
        return;
    }
    let mutex = RawMutex::new();
    let (round, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    // Both are changed under the lock, not at once.
    let (first, second) = (AtomicU64::new(0), AtomicU64::new(0));
    let add = || {
        let n = first.load(Relaxed);
        first.store(n + 1, Relaxed);
        assert_eq!(second.load(Relaxed), n);
        second.store(n + 1, Relaxed);
    };
    let mut waits = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut seen = 0;
            while !is_over.load(SeqCst) {
                if round.load(SeqCst) == seen {
                    thread::yield_now();
                    continue;
                }
                seen += 1;
                mutex.lock();
                add();
                mutex.unlock();
                done.store(seen, SeqCst);
            }
        });
        for now in 1.. {
            calm_down(&mutex);
            mutex.lock();
            round.store(now, SeqCst);
            add();
            // It unlocks after a wait that grows from round to round, each third time until somebody waits.
            (0..now % 1_000 * 10).for_each(|_| spin_loop());
            while now % 3 == 0 && mutex.flags.load(Relaxed) & WAITING == 0 {
                thread::yield_now();
            }
            mutex.unlock();
            while done.load(SeqCst) != now {
                thread::yield_now();
            }
            waits += u32::from(mutex.flags.load(Relaxed) & SYMMETRIC != 0);
            if waits == ENOUGH {
                println!("{waits} waits in {now} rounds");
                assert_eq!(first.load(Relaxed), 2 * now);
                break;
            }
        }
        is_over.store(true, SeqCst);
    });
    assert_eq!(mutex.locked.load(Relaxed), FREE);
}

const THREADS: usize = 3;

/// What of the protocol a run leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Without {
    Nothing,
    /// W2.
    Heavy,
    /// The barrier of U3.
    SecondLook,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Away,
    /// It has found the lock held, and wants the queue's.
    Fails,
    Announced {
        needs_heavy: bool,
    },
    /// After W2.
    Looks,
    Asleep,
    Holds,
    /// After U0, which found no flags.
    Plain,
    /// After U1.
    Stored,
    /// After U2, which found some.
    LooksAgain,
    /// After U0, which found some.
    Symmetric,
    /// After the exchange.
    Exchanged,
    Settles,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    is_held: bool,
    is_waiting: bool,
    is_symmetric: bool,
    queue: Vec<usize>,
    /// Who has the queue's lock across steps.
    queue_locked: bool,
    /// A store of FREE that is not visible yet.
    buffered: [bool; THREADS],
    at: [At; THREADS],
    /// How often each will still come.
    turns: [u8; THREADS],
}

/// The one that may give up.
const IMPATIENT: usize = 1;

impl State {
    fn first() -> State {
        State {
            is_held: false,
            is_waiting: false,
            is_symmetric: false,
            queue: Vec::new(),
            queue_locked: false,
            buffered: [false; THREADS],
            at: [At::Away; THREADS],
            turns: [2, 1, 1],
        }
    }

    fn with(&self, change: impl FnOnce(&mut State)) -> State {
        let mut next = self.clone();
        change(&mut next);
        next
    }

    fn has_flags(&self) -> bool {
        self.is_waiting || self.is_symmetric
    }

    fn drain(&mut self, thread: usize) {
        if std::mem::take(&mut self.buffered[thread]) {
            self.is_held = false;
        }
    }

    /// An exchange of FREE by HELD.
    fn take(&mut self, thread: usize) -> bool {
        self.drain(thread);
        !std::mem::replace(&mut self.is_held, true)
    }

    fn forget(&mut self, thread: usize) {
        self.queue.retain(|one| *one != thread);
        self.is_waiting = !self.queue.is_empty();
    }

    fn settle(&mut self, thread: usize) {
        self.drain(thread);
        self.at[thread] = At::Away;
        if self.queue.is_empty() {
            self.is_waiting = false;
        } else if !self.is_held {
            let first = self.queue[0];
            self.forget(first);
            self.at[first] = At::Away;
            self.turns[first] += 1;
        }
    }

    fn steps(&self, thread: usize, without: Without, next: &mut Vec<State>) {
        let i = thread;
        if self.buffered[i] {
            next.push(self.with(|s| s.drain(i)));
        }
        match self.at[i] {
            At::Away if self.turns[i] == 0 => {}
            At::Away => next.push(self.with(|s| {
                s.turns[i] -= 1;
                s.at[i] = if s.take(i) { At::Holds } else { At::Fails };
            })),
            At::Fails if self.queue_locked => {}
            At::Fails => next.push(self.with(|s| {
                s.drain(i);
                s.queue_locked = true;
                s.at[i] = At::Announced { needs_heavy: !s.is_symmetric };
                (s.is_waiting, s.is_symmetric) = (true, true);
            })),
            At::Announced { needs_heavy } => next.push(self.with(|s| {
                if needs_heavy && without != Without::Heavy {
                    (0..THREADS).for_each(|one| s.drain(one));
                }
                s.at[i] = At::Looks;
            })),
            At::Looks => next.push(self.with(|s| {
                if s.take(i) {
                    s.is_waiting = !s.queue.is_empty();
                    s.at[i] = At::Holds;
                } else {
                    s.queue.push(i);
                    s.at[i] = At::Asleep;
                }
                s.queue_locked = false;
            })),
            At::Asleep if i != IMPATIENT || self.queue_locked => {}
            At::Asleep => next.push(self.with(|s| {
                s.forget(i);
                s.at[i] = At::Away;
            })),
            At::Holds => next.push(self.with(|s| {
                s.at[i] = if s.has_flags() { At::Symmetric } else { At::Plain };
            })),
            At::Plain => next.push(self.with(|s| {
                s.buffered[i] = true;
                s.at[i] = At::Stored;
            })),
            At::Stored => next.push(self.with(|s| {
                s.at[i] = if s.has_flags() { At::LooksAgain } else { At::Away };
            })),
            At::LooksAgain => next.push(self.with(|s| {
                if without != Without::SecondLook {
                    s.drain(i);
                }
                s.at[i] = if s.is_waiting { At::Settles } else { At::Away };
            })),
            At::Symmetric => {
                let exchange = |s: &mut State| {
                    s.drain(i);
                    s.is_held = false;
                    s.at[i] = At::Exchanged;
                };
                next.push(self.with(exchange));
                if !self.is_waiting {
                    next.push(self.with(|s| s.is_symmetric = false));
                }
            }
            At::Exchanged => next.push(self.with(|s| {
                s.at[i] = if s.is_waiting { At::Settles } else { At::Away };
            })),
            At::Settles if self.queue_locked => {}
            At::Settles => next.push(self.with(|s| s.settle(i))),
        }
    }
}

/// A state in which somebody sleeps for good, if there is one. Also how many states there are.
fn explore(without: Without) -> (Option<State>, usize) {
    let first = State::first();
    let (mut seen, mut open) = (HashSet::from([first.clone()]), vec![first]);
    let mut lost = None;
    while let Some(state) = open.pop() {
        let mut next = Vec::new();
        (0..THREADS).for_each(|thread| state.steps(thread, without, &mut next));
        let rests = |i: usize| match state.at[i] {
            At::Away => state.turns[i] == 0 && !state.buffered[i],
            at => at == At::Asleep,
        };
        if (0..THREADS).all(rests) {
            // The impatient one does not sleep for good, but the others may.
            if (0..THREADS).any(|i| i != IMPATIENT && state.at[i] == At::Asleep) {
                lost.get_or_insert_with(|| state.clone());
            } else if state.queue.is_empty() {
                assert!(!state.is_held && !state.is_waiting, "{state:?}");
            }
        }
        open.extend(next.into_iter().filter(|state| seen.insert(state.clone())));
    }
    (lost, seen.len())
}

#[test]
#[cfg_attr(miri, ignore = "a search, with nothing for Miri to see")]
fn nobody_sleeps_through_an_unlock() {
    let (lost, states) = explore(Without::Nothing);
    assert_eq!(lost, None);
    assert!(states > 1_000, "{states} states are too few to mean anything");
    println!("{states} states");
}

#[test]
#[cfg_attr(miri, ignore = "a search, with nothing for Miri to see")]
fn without_any_part_somebody_does() {
    for without in [Without::Heavy, Without::SecondLook] {
        assert!(explore(without).0.is_some(), "{without:?}");
    }
}
