//! Tests of looking at threads.

use super::{Eyes, Whereabouts, is_sleep, parse, parse_waited, state};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Opens eyes on a thread that runs `f`.
fn on_thread(f: impl FnOnce() + Send + 'static) -> (Arc<Eyes>, std::thread::JoinHandle<()>) {
    let eyes = Arc::new(Eyes::closed());
    let its = eyes.clone();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        its.turn_to(gosched_base::os::gettid());
        tell.send(()).unwrap();
        f();
    });
    told.recv().unwrap();
    (eyes, thread)
}

#[test]
fn what_a_thread_has_waited_is_the_second_number() {
    assert_eq!(parse_waited(b"7318 4521 12\n"), Some(4521));
    for garbled in [&b""[..], b"7318", b"7318 -1 12", b"7318 x 12", b"\xff 1 2"] {
        assert_eq!(parse_waited(garbled), None, "{garbled:?}");
    }
}

#[test]
fn a_sleeper_is_seen_in_its_call_and_its_clock_stands() {
    let (read, write) = {
        let mut fds = [0; 2];
        // SAFETY: writes two descriptors, which are ours.
        assert_eq!(unsafe { libc::pipe(fds.as_mut_ptr()) }, 0);
        (fds[0], fds[1])
    };
    let (eyes, thread) = on_thread(move || {
        let mut byte = 0_u8;
        // SAFETY: reads one byte, which is ours.
        unsafe { libc::read(read, (&raw mut byte).cast(), 1) };
    });
    while eyes.look() != Whereabouts::InCall(libc::SYS_read) {
        std::thread::yield_now();
    }
    let before = eyes.cpu_time().unwrap();
    assert_eq!(eyes.look(), Whereabouts::InCall(libc::SYS_read));
    assert_eq!(eyes.cpu_time().unwrap(), before);
    let call = eyes.call().unwrap();
    assert_eq!((call[0], call[1], call[3]), (libc::SYS_read as u64, read as u64, 1));
    // SAFETY: writes one byte.
    unsafe { libc::write(write, [1_u8].as_ptr().cast(), 1) };
    thread.join().unwrap();
    // The kernel tells joiners a little before it takes the thread out of its tables.
    while eyes.cpu_time().is_some() {
        std::thread::yield_now();
    }
}

#[test]
fn a_computing_thread_is_running_and_its_clock_moves() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let (eyes, thread) = on_thread(|| {
        while !STOP.load(SeqCst) {
            std::hint::spin_loop();
        }
    });
    let before = eyes.cpu_time().unwrap();
    while eyes.cpu_time().unwrap() == before {}
    assert_eq!(eyes.look(), Whereabouts::Running);
    STOP.store(true, SeqCst);
    thread.join().unwrap();
}

#[test]
fn the_kernels_words_are_understood() {
    assert_eq!(parse(b"running\n"), Whereabouts::Running);
    assert_eq!(parse(b"-1 0x7ffc 0x7f01\n"), Whereabouts::Faulting);
    assert_eq!(parse(b"202 0x7f 0x80 0x0\n"), Whereabouts::InCall(202));
    assert_eq!(parse(b""), Whereabouts::Unknown);
    assert_eq!(parse(b"zombie\n"), Whereabouts::Unknown);
}

#[test]
fn the_state_is_found_behind_any_name() {
    assert_eq!(state(b"12 (gosched-m3) S 1 2 3"), Some(b'S'));
    assert_eq!(state(b"12 (a) R (b)) t 1 2 3"), Some(b't'));
    assert_eq!(state(b"12 (cut off"), None);
    assert_eq!(state(b""), None);
}

#[test]
fn a_sleeper_is_asleep_by_its_state() {
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let (eyes, thread) = on_thread(move || {
        let _ = told.recv();
    });
    while !eyes.is_asleep() {
        std::thread::yield_now();
    }
    drop(tell);
    thread.join().unwrap();
}

/// A thread that a tracer has just let go is seen neither on a CPU nor stopped: it waits for one.
#[test]
fn who_waits_for_a_cpu_is_not_asleep() {
    for state in [b'R', b'T', b't'] {
        assert!(!is_sleep(Some(state)));
    }
    for state in [b'S', b'D'] {
        assert!(is_sleep(Some(state)));
    }
}
