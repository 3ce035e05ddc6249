//! What users of similar runtimes have reported, where no other test has it. `docs/REPORTS.md` says
//! which report is whose, and where the others are.

use gosched::channel::{bounded, unbounded};
use gosched::net::UnixStream;
use gosched::sync::{Condvar, Mutex, WaitGroup};
use gosched::thread::{park_timeout, sleep, yield_now};
use gosched::{go, run};
use std::hint::black_box;
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Times that are beyond the clock, or beyond what a sum with it holds.
const ENDLESS: [Duration; 3] =
    [Duration::MAX, Duration::from_nanos(u64::MAX), Duration::from_secs(u64::MAX / 10)];

#[test]
fn endless_waits_are_ended_by_what_they_wait_for() {
    run(|| {
        for endless in ENDLESS {
            let sleeps = go(move || sleep(endless));
            let (give, take) = unbounded();
            let receives = go(move || take.recv_timeout(endless));
            let parks = go(move || park_timeout(endless));
            let group = WaitGroup::new();
            group.add(1);
            let waits = go({
                let group = group.clone();
                move || group.wait_timeout(endless)
            });
            let pair = Arc::new((Mutex::new(false), Condvar::new()));
            let is_told = go({
                let pair = pair.clone();
                move || {
                    let mut told = pair.0.lock().unwrap();
                    while !*told {
                        told = pair.1.wait_timeout(told, endless).unwrap().0;
                    }
                }
            });
            (0..100).for_each(|_| yield_now());
            give.send(7).unwrap();
            assert_eq!(receives.join().unwrap(), Ok(7));
            parks.thread().unpark();
            parks.join().unwrap();
            group.done();
            assert_eq!(waits.join().unwrap(), Ok(()));
            *pair.0.lock().unwrap() = true;
            pair.1.notify_all();
            is_told.join().unwrap();
            assert!(!sleeps.is_finished(), "{endless:?} are over");
        }
    });
}

/// Who holds a lock nearly all the time, and takes it again at once, does not keep others out.
#[test]
fn a_lock_goes_to_who_waits_for_it() {
    run(|| {
        let lock = Arc::new(Mutex::new(0_u64));
        let over = Arc::new(AtomicBool::new(false));
        let greedy: Vec<_> = (0..2)
            .map(|_| {
                let (lock, over) = (lock.clone(), over.clone());
                go(move || {
                    while !over.load(SeqCst) {
                        let mut count = lock.lock().unwrap();
                        (0..500).for_each(|_| *count = black_box(*count + 1));
                    }
                })
            })
            .collect();
        for _ in 0..20 {
            sleep(Duration::from_micros(100));
            assert!(lock.lock().unwrap().is_multiple_of(500), "somebody is in the middle");
        }
        over.store(true, SeqCst);
        greedy.into_iter().for_each(|g| g.join().unwrap());
    });
}

#[test]
fn senders_hear_of_the_last_receivers_end() {
    const ROUNDS: usize = 500;
    run(|| {
        for round in 0..ROUNDS {
            let (give, take) = bounded(round % 3);
            let senders: Vec<_> = (0..4)
                .map(|_| {
                    let give = give.clone();
                    go(move || (0..4).take_while(|n| give.send(*n).is_ok()).count())
                })
                .collect();
            drop(give);
            let receiver = go(move || take.recv().is_ok());
            assert!(receiver.join().unwrap());
            let sent: usize = senders.into_iter().map(|s| s.join().unwrap()).sum();
            assert!(sent <= 1 + round % 3, "{sent} sent, and one received");
        }
    });
}

/// Through a buffer that holds a few of the pieces.
#[test]
fn pieces_that_are_written_in_part_arrive_whole() {
    const PIECES: usize = 400;
    run(|| {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let (small, size) = (4096, size_of::<i32>() as libc::socklen_t);
        let (level, option) = (libc::SOL_SOCKET, libc::SO_SNDBUF);
        // SAFETY: the kernel reads the option, whose size is stated.
        let done = unsafe {
            libc::setsockopt(near.as_raw_fd(), level, option, (&raw const small).cast(), size)
        };
        assert_eq!(done, 0);
        let pieces: Vec<Vec<u8>> = (0..PIECES).map(|n| vec![n as u8; 1 + 37 * n % 911]).collect();
        let whole: Vec<u8> = pieces.concat();
        let writer = go(move || {
            let mut slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
            let (mut left, mut in_part) = (&mut slices[..], 0);
            while !left.is_empty() {
                let all: usize = left.iter().map(|slice| slice.len()).sum();
                let count = near.write_vectored(left).unwrap();
                in_part += usize::from(count < all);
                IoSlice::advance_slices(&mut left, count);
            }
            in_part
        });
        let mut got = Vec::new();
        let (mut one, mut other) = ([0; 100], [0; 333]);
        loop {
            let mut parts = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
            let count = far.read_vectored(&mut parts).unwrap();
            if count == 0 {
                break;
            }
            got.extend_from_slice(&one[..count.min(one.len())]);
            got.extend_from_slice(&other[..count.saturating_sub(one.len())]);
        }
        assert!(writer.join().unwrap() > 0, "nothing was written in part");
        assert_eq!(got.len(), whole.len());
        assert!(got == whole, "bytes are mixed up");
        let _ = far.read(&mut [0]);
    });
}
