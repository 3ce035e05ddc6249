//! Models of the permit, alone and together with the status word, as the scheduler uses them:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-protocol --release --test loom_permit`.
//!
//! Each test names a change of the code that it is known to catch.
#![cfg(loom)]

mod model;

use self::model::explore;
use gosched_protocol::{Permit, PermitTaken, StatusWord};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::thread;
use std::sync::atomic::AtomicBool;

/// Data that one thread hands to another; loom fails if the edge between them is missing.
#[derive(Debug, Default)]
struct Handed(UnsafeCell<u32>);

// SAFETY: loom checks each access.
unsafe impl Sync for Handed {}
// SAFETY: it is a number.
unsafe impl Send for Handed {}

impl Handed {
    fn add_one(&self) {
        self.0.with_mut(|value| {
            // SAFETY: loom has just checked that nobody else has access.
            unsafe { *value += 1 }
        });
    }

    fn get(&self) -> u32 {
        self.0.with(|value| {
            // SAFETY: loom has just checked that nobody writes.
            unsafe { *value }
        })
    }
}

/// A goroutine that parks, the queue it comes back through, and what the others left for it.
#[derive(Debug, Default)]
struct Goroutine {
    status: StatusWord,
    permit: Permit,
    /// Belongs to whoever owns the goroutine.
    stack: Handed,
    /// How often it stands in the run queue.
    queued: AtomicUsize,
    /// What each waker wrote before it left its token.
    left: [Handed; 2],
}

impl Goroutine {
    /// One that runs on the calling thread.
    fn running() -> Arc<Goroutine> {
        let g = Arc::new(Goroutine::default());
        g.status.created();
        g.status.run();
        g
    }

    /// What a machine does for a goroutine that parks. True: it waits, and others may have it.
    fn park(&self) -> bool {
        self.stack.add_one();
        self.status.park();
        match self.permit.park() {
            PermitTaken::No => true,
            PermitTaken::Yes => {
                self.status.ready();
                self.status.run();
                false
            }
        }
    }

    fn unpark(&self, waker: usize) {
        self.left[waker].add_one();
        if self.permit.unpark() {
            self.ready();
        }
    }

    fn time_out(&self) {
        if self.permit.time_out() {
            self.ready();
        }
    }

    /// What the winner does.
    fn ready(&self) {
        self.stack.add_one();
        self.status.ready();
        self.queued.fetch_add(1, Release);
    }

    /// Takes the goroutine from the queue and runs it. False: it isn't there.
    fn run(&self) -> bool {
        match self.queued.load(Acquire) {
            0 => return false,
            queued => assert_eq!(queued, 1, "made runnable twice"),
        }
        self.queued.fetch_sub(1, Relaxed);
        self.status.run();
        self.stack.add_one();
        true
    }
}

/// Which wakers have left their tokens, as a bystander sees it.
///
/// Made of atomics that loom doesn't know, so that looking brings no edge. Since loom switches
/// threads only before operations that it knows, a mark stands for the operation before it.
#[derive(Clone, Debug, Default)]
struct LeftTokens(std::sync::Arc<[AtomicBool; 2]>);

impl LeftTokens {
    fn add(&self, waker: usize) {
        self.0[waker].store(true, SeqCst);
    }

    fn get(&self) -> Vec<usize> {
        (0..2).filter(|&waker| self.0[waker].load(SeqCst)).collect()
    }
}

/// Two tokens against one wait. Catches: `Permit::park` with a relaxed
/// compare-exchange, or `Permit::unpark` with Release only (the suspended stack is not visible to
/// the waker); `Permit::unpark` that loads and then stores, or `Permit::park` that does (nobody
/// makes it runnable); `StatusWord::park` after `Permit::park` (the waker finds it running: abort).
#[test]
fn two_unparks_against_park() {
    explore(3, || {
        let g = Goroutine::running();
        let wakers = [0, 1].map(|waker| {
            let g = g.clone();
            thread::spawn(move || g.unpark(waker))
        });

        let waits = g.park();
        let early = waits && g.run();
        if early {
            assert_eq!(g.permit.take(), PermitTaken::Yes);
        }
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
        let late = waits && g.run();
        assert_eq!(early || late, waits, "nobody made it runnable");

        // A token that came after the first one was taken is kept.
        let kept = g.permit.take() == PermitTaken::Yes;
        assert!(kept || !late, "whoever made it runnable left a token");
        assert!(!g.run(), "made runnable twice");
    });
}

/// Two tokens may merge into one, which then stands for both. Catches:
/// `Permit::take` with a relaxed swap, or `Permit::unpark` with Acquire only.
#[test]
fn a_token_shows_what_was_written_before_it() {
    explore(3, || {
        let g = Goroutine::running();
        let left = LeftTokens::default();
        let wakers = [0, 1].map(|waker| {
            let (g, left) = (g.clone(), left.clone());
            thread::spawn(move || {
                g.unpark(waker);
                left.add(waker);
            })
        });

        let taken = g.permit.take();
        for waker in left.get() {
            assert_eq!(taken, PermitTaken::Yes, "a token is lost");
            assert_eq!(g.left[waker].get(), 1);
        }
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
    });
}

/// As above, for a `park` that finds the token; the second one may come while it takes the first.
/// Catches: `Permit::park` whose swap is relaxed, or that loads and then stores instead (the second
/// token is lost); `Permit::unpark` with Acquire only.
#[test]
fn a_token_that_park_finds_shows_what_was_written_before_it() {
    explore(3, || {
        let g = Goroutine::running();
        let left = LeftTokens::default();
        let wakers = [0, 1].map(|waker| {
            let (g, left) = (g.clone(), left.clone());
            thread::spawn(move || {
                g.unpark(waker);
                left.add(waker);
            })
        });

        if !g.park() {
            for waker in left.get() {
                assert_eq!(g.left[waker].get(), 1);
            }
        }
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
    });
}

/// The timer and a waker both want to end the wait. Catches: `Permit::time_out` that loads and
/// then stores (made runnable twice); `Permit::time_out` by a swap (a lost token).
#[test]
fn unpark_against_time_out() {
    explore(3, || {
        let g = Goroutine::running();
        assert!(g.park(), "no token yet");
        let waker = thread::spawn({
            let g = g.clone();
            move || g.unpark(0)
        });
        let timer = thread::spawn({
            let g = g.clone();
            move || g.time_out()
        });

        let early = g.run().then(|| g.permit.take());
        timer.join().unwrap();
        waker.join().unwrap();
        let late = g.run().then(|| g.permit.take());

        assert!(early.is_some() != late.is_some(), "to be made runnable once");
        let kept = g.permit.take();
        let tokens = [early, late, Some(kept)];
        let tokens = tokens.iter().filter(|&&taken| taken == Some(PermitTaken::Yes)).count();
        assert_eq!(tokens, 1, "one was left");
        assert_eq!(g.left[0].get(), 1);
    });
}

/// The same while the owner is still on its way into the wait. Catches: as the test above;
/// `Permit::time_out` with a relaxed compare-exchange (the suspended stack is not visible to the
/// timer); `Permit::park` that loads and then stores (nobody makes it runnable).
#[test]
fn park_against_unpark_and_time_out() {
    explore(3, || {
        let g = Goroutine::running();
        let waker = thread::spawn({
            let g = g.clone();
            move || g.unpark(0)
        });
        let timer = thread::spawn({
            let g = g.clone();
            move || g.time_out()
        });

        let waits = g.park();
        timer.join().unwrap();
        waker.join().unwrap();
        assert_eq!(g.run(), waits, "to be made runnable once for each wait");

        let taken = g.permit.take() == PermitTaken::Yes;
        assert!(!waits || taken, "the token is there, whoever ended the wait");
        assert!(waits || !taken, "park took it");
        assert_eq!(g.left[0].get(), 1);
    });
}
