//! Code that can't go on on another thread is stopped together with its own.

use crate::child::in_child;
use gosched::{go, run, runtime, thread};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

static OTHERS: AtomicU64 = AtomicU64::new(0);
static STOP: AtomicBool = AtomicBool::new(false);

fn tid() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::gettid() }
}

/// Computes until the other goroutine has had `turns` turns, which with one processor it only gets
/// when the caller is stopped, and checks that it stays on its thread.
fn compute_until_others_ran(turns: u64) {
    let (before, me) = (OTHERS.load(SeqCst), tid());
    let (mut x, mut last, mut seen) = (1.0_f64, before, 0);
    while seen < turns {
        let now = OTHERS.load(SeqCst);
        seen += u64::from(now != last);
        last = now;
        x = (x * 1.000_001 + 0.5).sqrt();
        assert!(x > 0.5 && x < 2.0, "{x}");
    }
    assert_eq!(tid(), me);
}

/// Runs `f` in a goroutine beside one that counts its turns.
fn beside_another(f: impl FnOnce() + Send + 'static) {
    run(move || {
        let other = go(|| {
            while !STOP.load(SeqCst) {
                OTHERS.fetch_add(1, SeqCst);
                thread::yield_now();
            }
        });
        f();
        STOP.store(true, SeqCst);
        other.join().unwrap();
    });
    let seen = runtime::preemptions();
    assert!(seen.frozen > 0, "{seen:?}");
}

/// Runs `f` on a stack that the runtime does not know.
fn on_foreign_stack(f: extern "C" fn()) {
    let mut stack = vec![0_u8; 256 << 10];
    // SAFETY: contexts are plain data; `getcontext` fills them.
    let mut there: libc::ucontext_t = unsafe { std::mem::zeroed() };
    let mut back = there;
    // SAFETY: fills the context, which is ours.
    assert_eq!(unsafe { libc::getcontext(&mut there) }, 0);
    there.uc_stack.ss_sp = stack.as_mut_ptr().cast();
    there.uc_stack.ss_size = stack.len();
    there.uc_link = &mut back;
    // SAFETY: an initialised context with a stack of its own; the function takes no arguments.
    unsafe { libc::makecontext(&mut there, f, 0) };
    // SAFETY: both contexts and the stack outlive the call, which returns when `f` does.
    assert_eq!(unsafe { libc::swapcontext(&mut back, &there) }, 0);
}

#[test]
fn on_a_foreign_stack() {
    in_child("procs=1,slice=100us", "frozen::on_a_foreign_stack", || {
        extern "C" fn there() {
            compute_until_others_ran(20);
        }
        beside_another(|| on_foreign_stack(there));
    });
}

/// Many of them at once, more than there may be frozen: those beyond run on, and all get on.
#[test]
fn many_on_foreign_stacks() {
    in_child("procs=2,slice=100us,maxthreads=12", "frozen::many_on_foreign_stacks", || {
        static FROZEN: AtomicU64 = AtomicU64::new(0);
        extern "C" fn there() {
            (0..2_000_000).for_each(|_| std::hint::spin_loop());
            FROZEN.store(runtime::preemptions().frozen, SeqCst);
        }
        beside_another(|| {
            while FROZEN.load(SeqCst) < 20 {
                let all: Vec<_> = (0..20).map(|_| go(|| on_foreign_stack(there))).collect();
                all.into_iter().for_each(|g| g.join().unwrap());
            }
        });
        assert!(runtime::counters().machines <= 12);
    });
}

#[test]
fn with_shared_thread_locals() {
    in_child("procs=1,slice=100us,tls=shared", "frozen::with_shared_thread_locals", || {
        thread_local!(static MINE: Cell<u64> = const { Cell::new(0) });
        beside_another(|| {
            // A read-modify-write that others would tear if they ran on this thread.
            let others = OTHERS.load(SeqCst);
            let (mut rounds, before) = (0, MINE.get());
            while OTHERS.load(SeqCst) < others + 20 {
                MINE.set(MINE.get() + 1);
                rounds += 1;
            }
            assert_eq!(MINE.get(), before + rounds);
            compute_until_others_ran(20);
        });
        assert_eq!(runtime::preemptions().in_place, 0);
    });
}

fn signal_mask() -> u64 {
    let mut mask = 0_u64;
    let at = &raw mut mask;
    // SAFETY: the kernel writes eight bytes, which are ours.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, 0, 0, at, 8) };
    mask
}

fn alternate_stack() -> usize {
    // SAFETY: all-zero is a value of this type.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: only asks.
    assert_eq!(unsafe { libc::sigaltstack(std::ptr::null(), &mut stack) }, 0);
    stack.ss_sp as usize
}

fn in_a_users_handler(flags: i32) {
    extern "C" fn handler(_: i32) {
        compute_until_others_ran(10);
    }
    // SAFETY: all-zero is a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = flags;
    // SAFETY: the handler only computes.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) }, 0);
    beside_another(|| {
        for _ in 0..3 {
            runtime::lock_os_thread();
            let before = (tid(), signal_mask(), alternate_stack());
            // SAFETY: the handler is the one above.
            assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
            assert_eq!((tid(), signal_mask(), alternate_stack()), before);
            runtime::unlock_os_thread();
            // The handler is gone, and with it the reason to stay.
            compute_anywhere();
        }
    });
    let seen = runtime::preemptions();
    assert!(seen.in_user_handler > 0 && seen.in_place > 0, "{seen:?}");
}

fn compute_anywhere() {
    let before = runtime::preemptions().in_place;
    while runtime::preemptions().in_place == before {
        std::hint::spin_loop();
    }
}

#[test]
fn in_a_users_handler_on_the_goroutines_stack() {
    in_child("procs=1,slice=100us", "frozen::in_a_users_handler_on_the_goroutines_stack", || {
        in_a_users_handler(0)
    });
}

#[test]
fn in_a_users_handler_on_the_alternate_stack() {
    in_child("procs=1,slice=100us", "frozen::in_a_users_handler_on_the_alternate_stack", || {
        in_a_users_handler(libc::SA_ONSTACK | libc::SA_RESTART)
    });
}

/// A frozen goroutine may be one that is locked to its thread already.
#[test]
fn a_goroutine_that_is_locked_stays_so() {
    in_child("procs=1,slice=100us", "frozen::a_goroutine_that_is_locked_stays_so", || {
        extern "C" fn there() {
            compute_until_others_ran(10);
        }
        beside_another(|| {
            runtime::lock_os_thread();
            let me = tid();
            on_foreign_stack(there);
            for _ in 0..20 {
                thread::sleep(Duration::from_micros(10));
                assert_eq!(tid(), me);
            }
            runtime::unlock_os_thread();
        });
    });
}

/// A long computation in libc makes room as well, after some patience.
#[test]
fn a_long_computation_in_libc_is_stopped_in_the_end() {
    in_child(
        "procs=1,slice=100us",
        "frozen::a_long_computation_in_libc_is_stopped_in_the_end",
        || {
            static CALLS: AtomicU64 = AtomicU64::new(0);
            run(|| {
                let other = go(|| {
                    while !STOP.load(SeqCst) {
                        OTHERS.fetch_add(1, SeqCst);
                        thread::yield_now();
                    }
                });
                // The other goroutine can only count during one call if that call was stopped, or the
                // caller on its way there or back: hence more calls than one.
                let haystack = vec![b'a'; 64 << 20];
                while CALLS.load(SeqCst) < 3 || runtime::preemptions().in_libc <= 64 {
                    let before = OTHERS.load(SeqCst);
                    // SAFETY: the bytes are ours.
                    let found = unsafe {
                        libc::memmem(
                            haystack.as_ptr().cast(),
                            haystack.len(),
                            c"aaaab".as_ptr().cast(),
                            5,
                        )
                    };
                    assert!(found.is_null());
                    CALLS.fetch_add(u64::from(OTHERS.load(SeqCst) != before), SeqCst);
                }
                STOP.store(true, SeqCst);
                other.join().unwrap();
            });
        },
    );
}
