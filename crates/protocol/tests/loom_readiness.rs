//! Models of a direction's readiness, with a kernel that tells of each change once:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-protocol --release --test loom_readiness`.
//!
//! Each test names a change of the code that it is known to catch.
#![cfg(loom)]

mod model;

use self::model::explore;
use gosched_protocol::Readiness;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use loom::thread;
use std::num::NonZeroUsize;

const WAITER: NonZeroUsize = NonZeroUsize::new(0x1000).unwrap();

/// A socket with its reader, who looks at it, and waits where it finds nothing.
#[derive(Debug, Default)]
struct Socket {
    readiness: Readiness,
    /// What the kernel has for the reader.
    messages: AtomicUsize,
    /// Belongs to whoever owns the reader: itself, or the one that makes it runnable.
    stack: UnsafeCell<u32>,
    /// How often the reader stands in the run queue.
    queued: AtomicUsize,
}

// SAFETY: loom checks each access to the cell.
unsafe impl Sync for Socket {}
// SAFETY: it is a number.
unsafe impl Send for Socket {}

impl Socket {
    fn touch_stack(&self) {
        self.stack.with_mut(|count| {
            // SAFETY: loom has just checked that nobody else has access.
            unsafe { *count += 1 }
        });
    }

    /// The kernel has something, and the poller says so.
    fn deliver(&self) {
        self.messages.fetch_add(1, Relaxed);
        if let Some(waiter) = self.readiness.make_ready() {
            assert_eq!(waiter, WAITER);
            self.make_runnable();
        }
    }

    fn time_out(&self) {
        if self.readiness.time_out() {
            self.make_runnable();
        }
    }

    fn make_runnable(&self) {
        self.touch_stack();
        self.queued.fetch_add(1, Release);
    }

    /// A nonblocking read.
    fn try_read(&self) -> bool {
        self.messages.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_ok()
    }

    /// The reader suspends itself. True: it waits, and belongs to whoever ends the wait.
    fn wait(&self) -> bool {
        self.touch_stack();
        self.readiness.wait(WAITER)
    }

    /// Runs the reader if it was made runnable.
    fn run(&self) -> bool {
        match self.queued.load(Acquire) {
            0 => return false,
            queued => assert_eq!(queued, 1, "made runnable twice"),
        }
        self.queued.fetch_sub(1, AcqRel);
        self.touch_stack();
        true
    }
}

/// A message that comes at any moment of a reader's look and wait is read. Catches: `wait` that
/// loads and then stores, `make_ready` that does nothing while nobody waits (nobody makes the
/// reader runnable); `wait` with a relaxed compare-exchange (the suspended stack is not visible).
#[test]
fn a_message_is_not_missed() {
    explore(3, || {
        let socket = Arc::new(Socket::default());
        let poller = thread::spawn({
            let socket = socket.clone();
            move || socket.deliver()
        });

        let mut read = socket.try_read();
        let mut poller = Some(poller);
        while !read {
            if socket.wait() {
                // All there is to come has come before the reader may be called lost.
                let early = socket.run();
                if let Some(poller) = poller.take() {
                    poller.join().unwrap();
                }
                assert!(early || socket.run(), "the message came, and nobody woke the reader");
                assert!(socket.readiness.take(), "woken by the poller");
            }
            read = socket.try_read();
        }
        if let Some(poller) = poller {
            poller.join().unwrap();
        }
        assert!(!socket.run(), "made runnable though it did not wait");
    });
}

/// Two messages, told by two threads, against one reader: two reads, each wait ended once.
/// Catches: `make_ready` that loads and then stores (made runnable twice).
#[test]
fn two_messages_against_a_reader() {
    explore(3, || {
        let socket = Arc::new(Socket::default());
        let pollers = [(); 2].map(|()| {
            let socket = socket.clone();
            thread::spawn(move || socket.deliver())
        });

        let waits = !socket.try_read() && socket.wait();
        let early = waits && socket.run();
        pollers.into_iter().for_each(|poller| poller.join().unwrap());
        let late = waits && socket.run();
        assert_eq!(early || late, waits, "nobody made it runnable");
        assert!(!socket.run(), "made runnable twice");
        while socket.try_read() {}
        assert_eq!(socket.messages.load(Relaxed), 0);
    });
}

/// The deadline and a message both want to end the wait. Catches: `time_out` by a swap (a lost
/// change), or with a relaxed compare-exchange (the suspended stack is not visible).
#[test]
fn a_message_against_the_deadline() {
    explore(3, || {
        let socket = Arc::new(Socket::default());
        let poller = thread::spawn({
            let socket = socket.clone();
            move || socket.deliver()
        });
        let timer = thread::spawn({
            let socket = socket.clone();
            move || socket.time_out()
        });

        let waits = socket.wait();
        let early = waits && socket.run();
        poller.join().unwrap();
        timer.join().unwrap();
        let late = waits && socket.run();
        assert_eq!(early || late, waits, "to be made runnable once for each wait");
        assert!(!socket.run(), "made runnable twice");
        // Whoever ended the wait, the reader looks once more before it fails or waits again, or
        // finds the note.
        assert!(socket.try_read());
        let noted = socket.readiness.take();
        assert_eq!(noted, waits, "a wait leaves the note to the woken, no wait has taken it");
    });
}
