//! What a locked goroutine does to its thread ends with the two.

use gosched::{go, run, runtime, thread};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const NAME: &CStr = c"marked";

/// A name, a nice value and a blocked signal.
fn mark() {
    // SAFETY: a terminated name.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) }, 0);
    // SAFETY: no memory is passed; 0 is the calling thread.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 7) }, 0);
    change_mask(libc::SIG_BLOCK);
}

fn change_mask(how: i32) -> bool {
    // SAFETY: an all-zero set is a valid, empty one.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut old: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours.
    unsafe { libc::sigaddset(&mut set, libc::SIGUSR2) };
    // SAFETY: both sets are ours.
    assert_eq!(unsafe { libc::pthread_sigmask(how, &set, &mut old) }, 0);
    // SAFETY: filled by the call.
    unsafe { libc::sigismember(&old, libc::SIGUSR2) == 1 }
}

fn is_marked() -> bool {
    let mut name = [0_u8; 16];
    // SAFETY: the kernel writes 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    // SAFETY: no memory is passed.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    // SAFETY: an all-zero set is a valid, empty one.
    let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask) };
    // SAFETY: filled by the call.
    let blocked = unsafe { libc::sigismember(&mask, libc::SIGUSR2) == 1 };
    CStr::from_bytes_until_nul(&name) == Ok(NAME) || nice == 7 || blocked
}

#[test]
fn nobody_sees_what_a_locked_goroutine_left() {
    run(|| {
        let seen = Arc::new(AtomicU32::new(0));
        for _ in 0..20 {
            let marked: Vec<_> = (0..5)
                .map(|_| {
                    go(|| {
                        runtime::lock_os_thread();
                        mark();
                        thread::sleep(Duration::from_micros(200));
                        assert!(is_marked());
                    })
                })
                .collect();
            let others: Vec<_> = (0..50)
                .map(|i| {
                    let seen = seen.clone();
                    go(move || {
                        if i % 5 == 0 {
                            std::thread::sleep(Duration::from_micros(100));
                        }
                        thread::yield_now();
                        seen.fetch_add(u32::from(is_marked()), SeqCst);
                    })
                })
                .collect();
            marked.into_iter().chain(others).for_each(|g| g.join().unwrap());
        }
        assert_eq!(seen.load(SeqCst), 0);
    });
}

/// The kernel copies the register by which code finds its machine.
#[test]
fn a_std_thread_made_by_a_goroutine_is_a_plain_thread() {
    run(|| {
        let is_goroutine = || std::thread::spawn(runtime::is_goroutine).join().unwrap();
        assert!(!is_goroutine());
        assert!(!gosched::blocking(is_goroutine));
        assert!(runtime::is_goroutine());
    });
}

/// `struct sigevent` as far as libc's own threads need it, and its room.
#[repr(C)]
struct CallBack {
    value: usize,
    signal: i32,
    how: i32,
    function: extern "C" fn(usize),
    attributes: usize,
    room: [u64; 4],
}

static CALLED_BACK: Mutex<Option<mpsc::Sender<(bool, usize)>>> = Mutex::new(None);

/// On a thread that libc made. It uses the runtime as any thread may.
extern "C" fn call_back(value: usize) {
    let is_goroutine = runtime::is_goroutine();
    let from_goroutine = go(move || value + 1).join().unwrap();
    if let Some(sender) = CALLED_BACK.lock().unwrap().as_ref() {
        let _ = sender.send((is_goroutine, from_goroutine));
    }
}

/// libc makes the threads of such timers without calling `pthread_create` by name.
#[test]
fn a_thread_that_libc_makes_for_a_goroutine_is_a_plain_thread() {
    run(|| {
        let (sender, called) = mpsc::channel();
        *CALLED_BACK.lock().unwrap() = Some(sender);
        let mut event = CallBack {
            value: 41,
            signal: 0,
            how: libc::SIGEV_THREAD,
            function: call_back,
            attributes: 0,
            room: [0; 4],
        };
        let mut timer: libc::timer_t = std::ptr::null_mut();
        let event = (&raw mut event).cast();
        // SAFETY: reads the event and writes the timer; both are ours.
        let made = unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, event, &mut timer) };
        assert_eq!(made, 0);
        assert!(runtime::is_goroutine(), "the caller is one again");
        let ms = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let often = libc::itimerspec { it_interval: ms, it_value: ms };
        // SAFETY: reads one setting.
        assert_eq!(unsafe { libc::timer_settime(timer, 0, &often, std::ptr::null_mut()) }, 0);
        for _ in 0..5 {
            assert_eq!(called.recv().unwrap(), (false, 42));
        }
        // SAFETY: made above.
        assert_eq!(unsafe { libc::timer_delete(timer) }, 0);
    });
}
