//! set*id: libc signals every thread and waits for each one's own control block.
//!
//! What hangs ends by the harness's watchdog.

use crate::harness::{ALL, Mode, coroutine, in_each, moved, on_thread};
use gosched_fiber::pool;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// A coroutine that sits in `read` on a thread of its own.
struct Blocked {
    write_end: libc::c_int,
    thread: std::thread::JoinHandle<()>,
}

impl Blocked {
    fn start() -> Blocked {
        let mut ends = [0; 2];
        // SAFETY: writes two descriptors, which are ours.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let [read_end, write_end] = ends;
        let inside = Arc::new(AtomicBool::new(false));
        let sets = inside.clone();
        let thread = std::thread::spawn(move || {
            let mut c = coroutine(move || {
                sets.store(true, SeqCst);
                let mut byte = 0_u8;
                // SAFETY: writes one byte, which is ours.
                let got = unsafe { libc::read(read_end, (&raw mut byte).cast(), 1) };
                assert_eq!((got, byte), (1, b'x'), "{}", std::io::Error::last_os_error());
            });
            assert!(c.resume());
        });
        while !inside.load(SeqCst) {
            std::thread::yield_now();
        }
        Blocked { write_end, thread }
    }

    fn finish(self) {
        // SAFETY: reads one byte of a constant.
        assert_eq!(unsafe { libc::write(self.write_end, b"x".as_ptr().cast(), 1) }, 1);
        self.thread.join().expect("the blocked coroutine ends");
    }
}

/// A coroutine that computes, on a thread of its own.
struct Spinning {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Spinning {
    fn start() -> Spinning {
        let (stop, inside) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (stops, sets) = (stop.clone(), inside.clone());
        let thread = std::thread::spawn(move || {
            let mut c = coroutine(move || {
                sets.store(true, SeqCst);
                while !stops.load(SeqCst) {
                    std::hint::spin_loop();
                }
            });
            assert!(c.resume());
        });
        while !inside.load(SeqCst) {
            std::thread::yield_now();
        }
        Spinning { stop, thread }
    }

    fn finish(self) {
        self.stop.store(true, SeqCst);
        self.thread.join().expect("the spinning coroutine ends");
    }
}

pub(crate) fn setgid() {
    // SAFETY: this only asks.
    let gid = unsafe { libc::getgid() };
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::setgid(gid) }, 0, "{}", std::io::Error::last_os_error());
}

/// Every call of the family with the values that hold already.
fn whole_family() {
    // SAFETY: this only asks.
    let uid = unsafe { libc::getuid() };
    // SAFETY: this only asks.
    let gid = unsafe { libc::getgid() };
    let same = libc::uid_t::MAX;
    // SAFETY: no memory is passed.
    let setuid = unsafe { libc::setuid(uid) };
    // SAFETY: no memory is passed.
    let setreuid = unsafe { libc::setreuid(same, uid) };
    // SAFETY: no memory is passed.
    let setregid = unsafe { libc::setregid(same, gid) };
    // SAFETY: no memory is passed.
    let setresuid = unsafe { libc::setresuid(same, uid, same) };
    // SAFETY: no memory is passed.
    let setresgid = unsafe { libc::setresgid(same, gid, same) };
    // SAFETY: no memory is passed.
    let seteuid = unsafe { libc::seteuid(uid) };
    // SAFETY: no memory is passed.
    let setegid = unsafe { libc::setegid(gid) };
    assert_eq!([setuid, setreuid, setregid, setresuid, setresgid, seteuid, setegid], [0; 7]);
    // SAFETY: an empty list.
    let setgroups = unsafe { libc::setgroups(0, std::ptr::null()) };
    assert!(setgroups == 0 || uid != 0, "{}", std::io::Error::last_os_error());
}

fn beside_others(_: Mode) {
    let (blocked, spinning) = (Blocked::start(), Spinning::start());
    on_thread(setgid);
    moved(setgid);
    on_thread(whole_family);
    moved(whole_family);
    spinning.finish();
    blocked.finish();
}

#[test]
fn returns_beside_coroutines_that_block_and_spin() {
    in_each(ALL, "setid::returns_beside_coroutines_that_block_and_spin", beside_others);
}

/// Whether a thread of this process has the name, or as much of it as the kernel keeps.
fn has_thread(name: &str) -> bool {
    let threads = std::fs::read_dir("/proc/self/task").expect("/proc").flatten();
    let names = threads.filter_map(|t| std::fs::read_to_string(t.path().join("comm")).ok());
    names.map(|name| name.trim_end().to_owned()).any(|it| !it.is_empty() && name.starts_with(&it))
}

#[test]
fn returns_beside_the_helper_thread() {
    in_each(ALL, "setid::returns_beside_the_helper_thread", |mode| {
        pool::start().expect("a thread");
        while !has_thread("gosched-fibers") {
            std::thread::yield_now();
        }
        beside_others(mode);
    });
}

#[test]
fn returns_while_coroutines_are_made_and_end() {
    in_each(ALL, "setid::returns_while_coroutines_are_made_and_end", |_| {
        pool::start().expect("a thread");
        let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stops, counts) = (stop.clone(), made.clone());
        let maker = std::thread::spawn(move || {
            while !stops.load(SeqCst) {
                let mut batch: Vec<_> =
                    (0..50).map(|_| coroutine(gosched_fiber::suspend)).collect();
                batch.iter_mut().for_each(|c| assert!(!c.resume()));
                batch.iter_mut().for_each(|c| assert!(c.resume()));
                counts.fetch_add(batch.len(), SeqCst);
            }
        });
        let mut calls = 0;
        // Both often, so that they meet; a maker that fails is seen below.
        while (calls < 100 || made.load(SeqCst) < 5000) && !maker.is_finished() {
            setgid();
            calls += 1;
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        stop.store(true, SeqCst);
        maker.join().expect("the maker");
    });
}
