//! Calls that block in the kernel without saying so, and more of them than there may be threads.

use crate::pulse;
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testprogs::random::Random;

pub(crate) fn blocked(random: &mut Random) {
    match random.below(4) {
        0 => std_sleep(random),
        1 => nanosleep(random),
        2 => poll(random),
        _ => read(random),
    }
}

fn short(random: &mut Random) -> Duration {
    Duration::from_micros(random.below(3_000))
}

/// std's sleep never ends early.
fn std_sleep(random: &mut Random) {
    let (asked, start) = (short(random), Instant::now());
    std::thread::sleep(asked);
    assert!(start.elapsed() >= asked, "a sleep ended early");
}

/// libc's may, but then it says so, and how much is left.
fn nanosleep(random: &mut Random) {
    let (asked, start) = (short(random), Instant::now());
    let time = libc::timespec { tv_sec: 0, tv_nsec: i64::from(asked.subsec_nanos()) };
    let mut left = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both are ours.
    let result = unsafe { libc::nanosleep(&time, &mut left) };
    if result == 0 {
        assert!(start.elapsed() >= asked, "a sleep ended early");
    } else {
        assert_eq!(std::io::Error::last_os_error().kind(), ErrorKind::Interrupted);
        let slept = asked.saturating_sub(Duration::from_nanos(left.tv_nsec as u64));
        assert!(start.elapsed() >= slept, "a sleep ended early");
    }
}

fn poll(random: &mut Random) {
    let (reader, _writer) = std::io::pipe().expect("a pipe");
    let (asked, start) = (random.below(4) as i32, Instant::now());
    let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
    let mut wanted = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one record, as it says.
    let result = unsafe { libc::poll(&mut wanted, 1, asked) };
    if result == 0 {
        assert!(start.elapsed() >= Duration::from_millis(asked as u64), "a poll ended early");
    } else {
        assert_eq!(std::io::Error::last_os_error().kind(), ErrorKind::Interrupted);
    }
}

/// A byte from a goroutine that computes first. Never EINTR.
fn read(random: &mut Random) {
    let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
    let (byte, rounds) = (random.bits() as u8, random.below(50));
    let other = gosched::go(move || {
        pulse::compute(rounds, 1);
        assert_eq!(writer.write(&[byte]).expect("never interrupted"), 1);
    });
    let mut got = [0];
    assert_eq!(reader.read(&mut got).expect("never interrupted"), 1);
    assert_eq!(got, [byte]);
    other.join().expect("it does not panic");
}

/// More goroutines read than there are threads; who writes comes last, and gets its turn only when
/// somebody's call is ended for it. It restarts: nobody sees EINTR. Not where goroutines can't leave
/// their threads in such a call: there all would wait for good.
pub(crate) fn crowd(random: &mut Random) {
    if random.below(3) > 0 || !pulse::has_signals() {
        return;
    }
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let Ok(_alone) = ONE_AT_A_TIME.try_lock() else { return };
    let entered = Arc::new(AtomicUsize::new(0));
    let (byte, count) = (random.bits() as u8, crate::THREADS_MAX + 4);
    let pipes: Vec<_> = (0..count).map(|_| std::io::pipe().expect("a pipe")).collect();
    let (readers, writers): (Vec<_>, Vec<_>) = pipes.into_iter().unzip();
    let read = |mut reader: std::io::PipeReader| {
        let entered = entered.clone();
        gosched::go(move || {
            entered.fetch_add(1, SeqCst);
            let mut got = [0];
            assert_eq!(reader.read(&mut got).expect("never interrupted"), 1);
            got[0]
        })
    };
    let readers: Vec<_> = readers.into_iter().map(read).collect();
    let last = gosched::go({
        let entered = entered.clone();
        move || {
            while entered.load(SeqCst) < count {
                gosched::thread::yield_now();
            }
            for mut writer in writers {
                assert_eq!(writer.write(&[byte]).expect("never interrupted"), 1);
            }
        }
    });
    for reader in readers {
        assert_eq!(reader.join().expect("it does not panic"), byte);
    }
    last.join().expect("it does not panic");
}
