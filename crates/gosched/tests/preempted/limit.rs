//! Every machine there may be is blocked, and who would free them is runnable.

use crate::child::in_child;
use gosched::{blocking, go, run, runtime};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// A semaphore of libc's: its waits don't go through anything that the runtime knows of.
struct Semaphore(UnsafeCell<libc::sem_t>);

// SAFETY: libc's semaphores are for all threads.
unsafe impl Sync for Semaphore {}
// SAFETY: it is not moved once it is used: it lies in an `Arc`.
unsafe impl Send for Semaphore {}

impl Semaphore {
    fn new() -> Arc<Semaphore> {
        // SAFETY: zeroes are storage for the call below.
        let semaphore = Arc::new(Semaphore(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        // SAFETY: storage of its own, initialised once.
        assert_eq!(unsafe { libc::sem_init(semaphore.0.get(), 0, 0) }, 0);
        semaphore
    }

    fn wait(&self) {
        // SAFETY: initialised.
        assert_eq!(unsafe { libc::sem_wait(self.0.get()) }, 0, "EINTR?");
    }

    fn post(&self) {
        // SAFETY: initialised.
        assert_eq!(unsafe { libc::sem_post(self.0.get()) }, 0);
    }
}

#[derive(Clone, Copy)]
struct Pipe([i32; 2]);

impl Pipe {
    fn new() -> Pipe {
        let mut ends = [0; 2];
        // SAFETY: writes two descriptors, which are ours.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        Pipe(ends)
    }

    fn read(self) {
        let mut byte = 0_u8;
        // SAFETY: reads one byte, which is ours.
        let count = unsafe { libc::read(self.0[0], (&raw mut byte).cast(), 1) };
        assert_eq!(count, 1, "{}", std::io::Error::last_os_error());
    }

    fn write(self) {
        // SAFETY: writes one byte.
        assert_eq!(unsafe { libc::write(self.0[1], [0_u8].as_ptr().cast(), 1) }, 1);
    }

    /// Waits until it can be read, with a time-out that is far away; what `poll` returned.
    fn poll(self) -> i32 {
        let mut wanted = libc::pollfd { fd: self.0[0], events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which is ours.
        unsafe { libc::poll(&mut wanted, 1, 60_000) }
    }
}

static ENTERED: AtomicU32 = AtomicU32::new(0);

/// Blocks all again and again until somebody was freed by force. One round is enough, unless a
/// thread is held up on its way into the call so long that its goroutine is stopped there.
fn block_all(
    count: usize,
    block: impl Fn(usize) + Copy + Send + 'static,
    free: impl FnOnce() + Copy + Send + 'static,
) {
    while runtime::preemptions().forced == 0 {
        block_once(count, block, free);
    }
    assert_eq!(runtime::counters().machines, 3);
}

/// Blocks `count` goroutines with `block`, more than there may be machines, and then makes
/// runnable who frees them with `free`.
fn block_once(
    count: usize,
    block: impl Fn(usize) + Copy + Send + 'static,
    free: impl FnOnce() + Send + 'static,
) {
    ENTERED.store(0, SeqCst);
    let blocked: Vec<_> = (0..count)
        .map(|i| {
            go(move || {
                ENTERED.fetch_add(1, SeqCst);
                block(i);
            })
        })
        .collect();
    while ENTERED.load(SeqCst) < 3 {
        std::thread::yield_now();
    }
    // From a plain thread: behind all of them in the queue.
    go(free).join().unwrap();
    blocked.into_iter().for_each(|b| b.join().unwrap());
}

#[test]
fn in_semaphores_and_pipes() {
    in_child("procs=2,maxthreads=3", "limit::in_semaphores_and_pipes", || {
        let semaphore: &'static Semaphore = Box::leak(Box::new(Semaphore::new()));
        let pipe = Pipe::new();
        let block =
            move |i: usize| if i.is_multiple_of(2) { semaphore.wait() } else { pipe.read() };
        block_all(24, block, move || (0..12).for_each(|_| (semaphore.post(), pipe.write()).0));
    });
}

#[test]
fn in_pipes_alone() {
    in_child("procs=1,maxthreads=3", "limit::in_pipes_alone", || {
        let pipe = Pipe::new();
        block_all(12, move |_| pipe.read(), move || (0..12).for_each(|_| pipe.write()));
    });
}

#[test]
fn in_declared_calls() {
    in_child("procs=2,maxthreads=3", "limit::in_declared_calls", || {
        let pipe = Pipe::new();
        let block = move |_| blocking(|| pipe.read());
        block_all(12, block, move || (0..12).for_each(|_| pipe.write()));
    });
}

/// The thread that waits for the semaphore, or is about to; 0 before, and `PASSED` after it.
static IN_SEMAPHORE: AtomicI32 = AtomicI32::new(0);
const PASSED: i32 = -1;

/// Whether the kernel says so of the thread.
fn is_asleep(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S")))
}

/// A call with a time-out would return EINTR, so it is not interrupted while a machine is to be had
/// whose call restarts.
#[test]
fn a_futex_without_a_time_out_is_interrupted_first() {
    in_child(
        "procs=2,maxthreads=3",
        "limit::a_futex_without_a_time_out_is_interrupted_first",
        || {
            let semaphore: &'static Semaphore = Box::leak(Box::new(Semaphore::new()));
            let pipe = Pipe::new();
            let block = move |i| {
                if i == 0 {
                    // SAFETY: no memory is passed.
                    IN_SEMAPHORE.store(unsafe { libc::gettid() }, SeqCst);
                    semaphore.wait();
                    IN_SEMAPHORE.store(PASSED, SeqCst);
                } else {
                    // Else there would be nobody but them to interrupt. Who frees all may have come
                    // first, and then there will be nobody who waits.
                    let waits_or_passed = |thread| thread == PASSED || is_asleep(thread);
                    while !waits_or_passed(IN_SEMAPHORE.load(SeqCst)) {
                        std::thread::yield_now();
                    }
                    assert_eq!(pipe.poll(), 1)
                }
                // The last one: the two that poll have both seen the byte.
                if ENTERED.fetch_add(1, SeqCst) == 5 {
                    IN_SEMAPHORE.store(0, SeqCst);
                    pipe.read();
                }
            };
            block_all(3, block, move || {
                semaphore.post();
                pipe.write();
            });
        },
    );
}

#[test]
fn in_a_mutex_of_stds_whose_holder_is_stopped() {
    in_child(
        "procs=2,maxthreads=3,slice=100us",
        "limit::in_a_mutex_of_stds_whose_holder_is_stopped",
        || {
            static SUM: Mutex<u64> = Mutex::new(0);
            static STOP: AtomicBool = AtomicBool::new(false);
            run(|| {
                // So that there is always somebody to stop the holder for.
                let hog = || {
                    while !STOP.load(SeqCst) {
                        std::hint::spin_loop();
                    }
                };
                let hogs: Vec<_> = (0..3).map(|_| go(hog)).collect();
                let holders: Vec<_> = (0..20)
                    .map(|_| {
                        go(|| {
                            for _ in 0..10 {
                                let mut sum = SUM.lock().unwrap();
                                let before = runtime::preemptions().in_place;
                                // Until somebody was stopped: the holder, most likely.
                                while runtime::preemptions().in_place == before {
                                    std::hint::spin_loop();
                                }
                                *sum += 1;
                            }
                        })
                    })
                    .collect();
                holders.into_iter().for_each(|h| h.join().unwrap());
                STOP.store(true, SeqCst);
                hogs.into_iter().for_each(|h| h.join().unwrap());
            });
            assert_eq!(*SUM.lock().unwrap(), 200);
            let (counts, seen) = (runtime::counters(), runtime::preemptions());
            assert!(counts.futex_waits > 0 && seen.in_place >= 200, "{counts:?} {seen:?}");
        },
    );
}

/// The thread of the one that blocked beside the one that always has work; 0 before it runs.
static BESIDE: AtomicI32 = AtomicI32::new(0);
static HAS_RUN: AtomicBool = AtomicBool::new(false);

/// One goroutine never runs out of work on its processor. The other processor has lost its machine
/// to a blocked call, there can be no more machines, and what is in its ring has its turn
/// nevertheless.
fn beside_one_that_always_has_work(go_on: fn()) {
    // SAFETY: no memory is passed.
    let thread = || unsafe { libc::gettid() };
    run(move || {
        let (pipe, held) = (Pipe::new(), Pipe::new());
        let (mut seen, before) = (0, runtime::counters().undeclared_hand_offs);
        // It keeps the third machine.
        let holder = go(move || held.read());
        while runtime::counters().undeclared_hand_offs == before {
            runtime::gosched();
        }
        while seen < 5 {
            BESIDE.store(0, SeqCst);
            HAS_RUN.store(false, SeqCst);
            let beside = go(move || {
                BESIDE.store(thread(), SeqCst);
                let behind = go(|| HAS_RUN.store(true, SeqCst));
                pipe.read();
                behind.join().unwrap();
            });
            // Without a word to the runtime, so that the other processor takes it, as a rule.
            while BESIDE.load(SeqCst) == 0 {
                std::hint::spin_loop();
            }
            seen += u32::from(BESIDE.load(SeqCst) != thread());
            while !HAS_RUN.load(SeqCst) {
                go_on();
            }
            pipe.write();
            beside.join().unwrap();
        }
        held.write();
        holder.join().unwrap();
    });
    assert!(runtime::counters().machine_turns > 0);
}

#[test]
fn beside_one_that_yields() {
    in_child("procs=2,maxthreads=3", "limit::beside_one_that_yields", || {
        beside_one_that_always_has_work(gosched::thread::yield_now);
    });
}

#[test]
fn beside_one_that_computes() {
    in_child("procs=2,maxthreads=3", "limit::beside_one_that_computes", || {
        beside_one_that_always_has_work(std::hint::spin_loop);
    });
}
