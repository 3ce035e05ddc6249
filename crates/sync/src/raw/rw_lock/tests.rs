//! What a guest, a reader that came too late and has not taken itself off yet, must not do.

use super::{ONE_READER, RawRwLock, WAITING, WRITER};
use crate::context;
use crate::node::Patience;
use crate::rt::Critical;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

fn wait_for_waiters(lock: &RawRwLock, len: usize) {
    loop {
        let critical = Critical::enter();
        let now = lock.waiters.lock(&critical).len();
        drop(critical);
        if now == len {
            return;
        }
        thread::yield_now();
    }
}

/// A writer that gives up lets the readers behind it join those who read: a guest beside the writer
/// that has the lock is none of them.
#[test]
fn a_guest_beside_a_writer_is_no_reader() {
    let lock = &RawRwLock::new();
    lock.write();
    let (ctx, cancel) = &context::with_cancel(&context::background());
    thread::scope(|s| {
        let writer = s.spawn(move || lock.write_with(Patience::unless(ctx).unwrap()));
        wait_for_waiters(lock, 1);
        let reader = s.spawn(move || {
            lock.read();
            let word = lock.word.load(Relaxed);
            lock.read_unlock();
            word
        });
        wait_for_waiters(lock, 2);
        let word = lock.word.fetch_add(ONE_READER, Relaxed);
        assert_eq!(word & WRITER, WRITER);
        assert!(word < ONE_READER);
        cancel.cancel();
        assert!(!writer.join().unwrap(), "gave up");
        let word = lock.word.fetch_sub(ONE_READER, Relaxed);
        assert_eq!(word, ONE_READER | WAITING | WRITER, "the guest alone is counted");
        lock.write_unlock();
        let word = reader.join().unwrap();
        assert_eq!(word & WRITER, 0);
        assert!(word >= ONE_READER);
    });
    assert_eq!(lock.word.load(Relaxed), 0);
}

/// The last guest to leave a free lock is the one that settles for those who wait.
#[test]
fn a_guest_that_leaves_settles() {
    let lock = &RawRwLock::new();
    lock.write();
    thread::scope(|s| {
        let writer = s.spawn(move || {
            lock.write();
            lock.write_unlock();
        });
        wait_for_waiters(lock, 1);
        lock.word.fetch_add(ONE_READER, Relaxed);
        lock.write_unlock();
        assert_eq!(lock.word.load(Relaxed), ONE_READER | WAITING, "not free yet");
        lock.read_unlock();
        writer.join().unwrap();
    });
    assert_eq!(lock.word.load(Relaxed), 0);
}
