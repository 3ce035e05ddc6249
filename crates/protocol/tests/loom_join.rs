//! Models of the join word:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-protocol --release --test loom_join`.
//!
//! Each test names a change of the code that it is known to catch.
#![cfg(loom)]

mod model;

use self::model::explore;
use gosched_protocol::{Completed, JoinWord, Registered};
use loom::alloc::Track;
use loom::cell::UnsafeCell;
use loom::thread;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

/// What a goroutine and its join handle share. Loom fails if it is never freed.
struct Packet {
    word: JoinWord,
    /// Written by: the goroutine before it completes. Read by: whoever frees the packet.
    result: UnsafeCell<Option<Track<u32>>>,
    /// Written by: the handle before it registers or detaches. Read by: the completer.
    left_by_handle: UnsafeCell<u32>,
}

/// One of the two references.
#[derive(Clone, Copy)]
struct PacketRef(NonNull<Packet>);

// SAFETY: loom checks each access to the cells.
unsafe impl Send for PacketRef {}

impl PacketRef {
    fn new() -> PacketRef {
        let packet = Packet {
            word: JoinWord::new(),
            result: UnsafeCell::new(None),
            left_by_handle: UnsafeCell::new(0),
        };
        PacketRef(NonNull::from(Box::leak(Box::new(packet))))
    }

    fn packet(&self) -> &Packet {
        // SAFETY: each side stops using the packet when the word says that it is the other's, which
        // is what is tested.
        unsafe { self.0.as_ref() }
    }

    fn write_result(&self) {
        self.packet().result.with_mut(|result| {
            // SAFETY: loom has just checked that nobody else has access.
            unsafe { *result = Some(Track::new(42)) }
        });
    }

    fn leave_from_handle(&self) {
        self.packet().left_by_handle.with_mut(|left| {
            // SAFETY: loom has just checked that nobody else has access.
            unsafe { *left = 7 }
        });
    }

    fn left_by_handle(&self) -> u32 {
        self.packet().left_by_handle.with(|left| {
            // SAFETY: loom has just checked that nobody writes.
            unsafe { *left }
        })
    }

    /// Takes the result out and frees the packet.
    fn free(self) -> u32 {
        // The use as a whole, for loom to check against the other side's.
        self.packet().left_by_handle.with_mut(|_| ());
        // SAFETY: made by `new` from a box; freed by one side only, which is what is tested.
        let packet = unsafe { Box::from_raw(self.0.as_ptr()) };
        let Packet { result, .. } = *packet;
        let result = result.with_mut(|result| {
            // SAFETY: loom has just checked that nobody else has access.
            unsafe { (*result).take() }
        });
        *result.expect("there is a result").get_ref()
    }
}

/// What the goroutine does at its end. Returns the waiter that it woke.
fn complete(packet: PacketRef) -> Option<NonZeroUsize> {
    packet.write_result();
    match packet.packet().word.complete() {
        Completed::Unclaimed => None,
        Completed::Wake(waiter) => {
            assert_eq!(packet.left_by_handle(), 7, "the joiner is suspended");
            Some(waiter)
        }
        Completed::Detached => {
            assert_eq!(packet.free(), 42);
            None
        }
    }
}

fn waiter() -> NonZeroUsize {
    NonZeroUsize::new(0x1000).expect("not 0")
}

/// The joiner waits, or finds the result. Catches: the swap of `JoinWord::complete` with Acquire
/// only, or `register` with a relaxed failure (the result is not visible to a joiner that comes
/// late); that swap with Release only, or `register` with a relaxed success (the suspended joiner
/// is not visible to the completer); `complete` that loads and then stores, or `register` that
/// does (nobody wakes the joiner).
#[test]
fn register_against_complete() {
    explore(3, || {
        let packet = PacketRef::new();
        let goroutine = thread::spawn(move || complete(packet));

        packet.leave_from_handle();
        let registered = packet.packet().word.register(waiter());
        let result = match registered {
            Registered::Done => Some(packet.free()),
            Registered::Waiting => None,
        };

        // A wake-up is the end of the thread here: it carries the memory as a wake-up does.
        let woken = goroutine.join().unwrap();
        match registered {
            Registered::Done => assert_eq!(woken, None, "nobody waits"),
            Registered::Waiting => assert_eq!(woken, Some(waiter()), "the joiner waits for ever"),
        }
        assert_eq!(result.unwrap_or_else(|| packet.free()), 42);
    });
}

/// The joiner gives up, or is too late for it. Catches: `withdraw` that loads and then stores (the
/// joiner is woken although it has left, or the packet is used after it was freed).
#[test]
fn withdraw_against_complete() {
    explore(3, || {
        let packet = PacketRef::new();
        let goroutine = thread::spawn(move || complete(packet));

        packet.leave_from_handle();
        let word = &packet.packet().word;
        let given_up = word.register(waiter()) == Registered::Waiting && word.withdraw(waiter());
        let freed = given_up && word.detach() && packet.free() == 42;

        let woken = goroutine.join().unwrap();
        if given_up {
            assert_eq!(woken, None, "it has left");
        } else {
            assert!(!freed);
            assert_eq!(packet.free(), 42);
        }
    });
}

/// The handle is dropped. Catches: the swap of `JoinWord::complete` with Release only, or
/// `detach` with a relaxed success (freed while the handle uses it); the swap with Acquire only,
/// or `detach` with a relaxed failure (the result is not visible to the handle that drops it);
/// `detach` that loads and then stores (never freed).
#[test]
fn detach_against_complete() {
    explore(3, || {
        let packet = PacketRef::new();
        let goroutine = thread::spawn(move || complete(packet));

        packet.leave_from_handle();
        if packet.packet().word.detach() {
            assert_eq!(packet.free(), 42);
        }
        assert_eq!(goroutine.join().unwrap(), None, "nobody waits");
    });
}

/// The handle asks before it registers. Catches: `JoinWord::is_done` with a relaxed load, or
/// `complete` with Acquire only (the result is not visible).
#[test]
fn is_done_against_complete() {
    explore(3, || {
        let packet = PacketRef::new();
        let goroutine = thread::spawn(move || complete(packet));

        if packet.packet().word.is_done() {
            assert_eq!(packet.free(), 42);
            assert_eq!(goroutine.join().unwrap(), None);
        } else {
            assert_eq!(goroutine.join().unwrap(), None);
            assert_eq!(packet.packet().word.register(waiter()), Registered::Done);
            assert_eq!(packet.free(), 42);
        }
    });
}

/// The goroutine asks whether anybody will ever want the result before it completes.
#[test]
fn is_detached_is_a_hint() {
    explore(3, || {
        let packet = PacketRef::new();
        let goroutine = thread::spawn(move || {
            let detached = packet.packet().word.is_detached();
            packet.write_result();
            let completed = packet.packet().word.complete();
            assert!(!detached || completed == Completed::Detached, "once dropped it stays so");
            if completed == Completed::Detached {
                packet.free();
            }
        });

        if packet.packet().word.detach() {
            packet.free();
        }
        goroutine.join().unwrap();
    });
}
