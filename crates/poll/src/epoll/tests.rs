//! Tests of the poller.

use super::{EVENTS, Poller, Wait, is_precise};
use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ME: NonZeroUsize = NonZeroUsize::new(0x1000).unwrap();

fn nobody(waiter: NonZeroUsize) {
    panic!("{waiter:#x} does not wait");
}

/// The waiters that a wait finds.
fn found(poller: &Poller, wait: Wait) -> Vec<usize> {
    let mut found = Vec::new();
    poller.wait(wait, |waiter| found.push(waiter.get()));
    found
}

fn pair() -> (UnixStream, UnixStream) {
    let (a, b) = UnixStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    b.set_nonblocking(true).unwrap();
    (a, b)
}

#[test]
fn a_ring_before_the_wait_is_not_lost() {
    let poller = Poller::new().unwrap();
    poller.ring();
    poller.wait(Wait::Forever, nobody);
}

#[test]
fn a_look_in_passing_leaves_the_ring_to_the_sleeper() {
    let poller = Poller::new().unwrap();
    poller.ring();
    poller.wait(Wait::Never, nobody);
    poller.wait(Wait::Forever, nobody);
    // Now it was taken: nothing ends this wait but its time.
    let start = Instant::now();
    poller.wait(Wait::For(Duration::from_millis(1)), nobody);
    assert!(start.elapsed() >= Duration::from_millis(1));
}

#[test]
fn every_ring_ends_a_wait() {
    let poller = Arc::new(Poller::new().unwrap());
    let ringer = poller.clone();
    let (ask, asked) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        for () in asked {
            ringer.ring();
        }
    });
    for _ in 0..1000 {
        ask.send(()).unwrap();
        poller.wait(Wait::Forever, nobody);
    }
    drop(ask);
    thread.join().unwrap();
}

#[test]
fn waits_at_least_as_long_as_asked() {
    let poller = Poller::new().unwrap();
    let (start, d) = (Instant::now(), Duration::from_micros(300));
    poller.wait(Wait::For(d), nobody);
    assert!(start.elapsed() >= d);
    poller.wait(Wait::Never, nobody);
}

#[test]
fn a_rough_time_out_is_none_too_short() {
    let poller = Poller::new().unwrap();
    let (start, d) = (Instant::now(), Duration::from_micros(300));
    poller.wait(Wait::Roughly(d), nobody);
    assert!(start.elapsed() >= d);
}

#[test]
fn only_short_time_outs_are_asked_for_precisely() {
    assert!(is_precise(Wait::For(Duration::from_micros(1))));
    assert!(is_precise(Wait::For(Duration::from_millis(999))));
    let others = [
        Wait::Never,
        Wait::For(Duration::from_secs(1)),
        Wait::Roughly(Duration::from_millis(1)),
        Wait::Forever,
    ];
    others.into_iter().for_each(|wait| assert!(!is_precise(wait), "{wait:?}"));
}

#[test]
fn a_change_wakes_who_waits_for_it_once() {
    let poller = Poller::new().unwrap();
    let (ours, mut theirs) = pair();
    let descriptor = poller.add(ours.as_raw_fd()).unwrap();
    // Writable from the start, and nobody waits for it.
    assert!(found(&poller, Wait::Forever).is_empty());
    assert!(descriptor.write.take());
    assert!(!descriptor.read.take());

    assert!(descriptor.read.wait(ME));
    theirs.write_all(b"x").unwrap();
    assert_eq!(found(&poller, Wait::Forever), [ME.get()]);
    assert!(descriptor.read.take());
    // Edge-triggered: what was told is not told again, read or not.
    assert!(descriptor.read.wait(ME));
    assert!(found(&poller, Wait::Never).is_empty());
    theirs.write_all(b"y").unwrap();
    assert_eq!(found(&poller, Wait::Forever), [ME.get()]);
    assert!(descriptor.read.take());
    poller.remove(ours.as_raw_fd(), descriptor);
}

#[test]
fn what_came_before_the_registration_is_told() {
    let poller = Poller::new().unwrap();
    let (ours, mut theirs) = pair();
    theirs.write_all(b"x").unwrap();
    let descriptor = poller.add(ours.as_raw_fd()).unwrap();
    assert!(descriptor.read.wait(ME));
    assert_eq!(found(&poller, Wait::Forever), [ME.get()]);
}

#[test]
fn a_full_pipe_that_drains_and_a_peer_that_goes_are_told() {
    let poller = Poller::new().unwrap();
    let (mut ours, mut theirs) = pair();
    let descriptor = poller.add(ours.as_raw_fd()).unwrap();
    poller.wait(Wait::Forever, nobody);
    while ours.write(&[0; 4096]).is_ok() {}
    descriptor.write.take();
    assert!(descriptor.write.wait(ME));
    assert!(found(&poller, Wait::Never).is_empty());
    while theirs.read(&mut [0; 4096]).is_ok() {}
    assert_eq!(found(&poller, Wait::Forever), [ME.get()]);

    descriptor.read.take();
    assert!(descriptor.read.wait(ME));
    drop(theirs);
    assert_eq!(found(&poller, Wait::Forever), [ME.get()]);
}

#[test]
fn a_file_that_is_gone_tells_nothing_though_a_copy_of_it_is_open() {
    let poller = Poller::new().unwrap();
    let (ours, mut theirs) = pair();
    let copy = ours.try_clone().unwrap();
    let descriptor = poller.add(ours.as_raw_fd()).unwrap();
    poller.wait(Wait::Forever, nobody);
    poller.remove(ours.as_raw_fd(), descriptor);
    drop(ours);
    theirs.write_all(b"x").unwrap();
    assert!(found(&poller, Wait::Never).is_empty());
    drop(copy);
}

#[test]
fn more_changes_than_one_batch_holds_are_all_told() {
    let poller = Poller::new().unwrap();
    let mut pairs = Vec::new();
    for i in 0..2 * EVENTS + 1 {
        let (ours, mut theirs) = pair();
        let descriptor = poller.add(ours.as_raw_fd()).unwrap();
        assert!(descriptor.read.wait(NonZeroUsize::new((i + 1) << 4).unwrap()));
        theirs.write_all(b"x").unwrap();
        pairs.push((ours, theirs, descriptor));
    }
    let mut all = Vec::new();
    let mut waits = 0;
    while all.len() < pairs.len() {
        all.extend(found(&poller, Wait::Forever));
        waits += 1;
    }
    assert!(waits >= 3);
    all.sort_unstable();
    assert!(all.iter().copied().eq((1..=pairs.len()).map(|i| i << 4)));
    for (ours, _theirs, descriptor) in pairs {
        descriptor.read.take();
        poller.remove(ours.as_raw_fd(), descriptor);
    }
}

#[test]
fn a_file_that_cannot_be_polled_is_refused() {
    let poller = Poller::new().unwrap();
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    assert_eq!(poller.add(file.as_raw_fd()).unwrap_err().0, libc::EPERM);
    assert_eq!(poller.add(-1).unwrap_err().0, libc::EBADF);
}
