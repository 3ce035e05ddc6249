//! Signal masks and handlers of goroutines.

use crate::child::in_child;
use gosched::{go, run, runtime, thread};
use std::mem::MaybeUninit;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};

fn tid() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::gettid() }
}

/// What the kernel says.
fn kernel_mask() -> u64 {
    let mut mask = 0_u64;
    // SAFETY: the kernel writes eight bytes, which are ours.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, 0, 0, &raw mut mask, 8) };
    mask
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: all-zero is the empty set.
    let mut set: libc::sigset_t = unsafe { MaybeUninit::zeroed().assume_init() };
    for signal in signals {
        // SAFETY: a set and a signal.
        unsafe { libc::sigaddset(&mut set, *signal) };
    }
    set
}

fn contains(set: &libc::sigset_t, signal: i32) -> bool {
    // SAFETY: an initialised set and a signal.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// Changes the mask by libc and returns the former one.
fn change(how: i32, set: &libc::sigset_t) -> libc::sigset_t {
    let mut old = set_of(&[]);
    // SAFETY: both sets are ours.
    assert_eq!(unsafe { libc::pthread_sigmask(how, set, &mut old) }, 0);
    old
}

fn asked() -> libc::sigset_t {
    let mut old = set_of(&[]);
    // SAFETY: only asks.
    assert_eq!(unsafe { libc::sigprocmask(libc::SIG_BLOCK, null(), &mut old) }, 0);
    old
}

fn compute_until_stopped(times: u64) {
    let before = runtime::preemptions().in_place;
    while runtime::preemptions().in_place < before + times {
        std::hint::spin_loop();
    }
}

static STOP: AtomicBool = AtomicBool::new(false);

/// Runs `f` beside goroutines that compute and see to it that their mask is that of all.
fn beside_others(f: impl FnOnce() + Send + 'static) {
    run(move || {
        let normal = kernel_mask();
        let other = move || {
            while !STOP.load(SeqCst) {
                assert_eq!(kernel_mask(), normal);
                (0..1000).for_each(|_| std::hint::spin_loop());
            }
        };
        let others: Vec<_> = (0..4).map(|_| go(other)).collect();
        f();
        STOP.store(true, SeqCst);
        others.into_iter().for_each(|o| o.join().unwrap());
        assert_eq!(kernel_mask(), normal);
    });
}

#[test]
fn a_goroutine_with_a_mask_of_its_own_keeps_its_thread() {
    in_child(
        "procs=2,slice=100us",
        "signals::a_goroutine_with_a_mask_of_its_own_keeps_its_thread",
        || {
            beside_others(|| {
                for _ in 0..10 {
                    let before = change(libc::SIG_BLOCK, &set_of(&[libc::SIGUSR1]));
                    let me = tid();
                    for _ in 0..20 {
                        compute_until_stopped(2);
                        thread::yield_now();
                        assert_eq!(tid(), me);
                        assert!(contains(&asked(), libc::SIGUSR1));
                        assert_eq!(kernel_mask() >> (libc::SIGUSR1 - 1) & 1, 1);
                    }
                    // A second change, and a lock of its own, don't end it.
                    change(libc::SIG_BLOCK, &set_of(&[libc::SIGUSR2]));
                    runtime::lock_os_thread();
                    runtime::unlock_os_thread();
                    change(libc::SIG_UNBLOCK, &set_of(&[libc::SIGUSR2]));
                    compute_until_stopped(2);
                    assert_eq!(tid(), me);
                    change(libc::SIG_SETMASK, &before);
                }
                // Free again: it moves, sooner or later.
                let me = tid();
                while tid() == me {
                    compute_until_stopped(1);
                }
            });
        },
    );
}

#[test]
fn who_blocks_everything_is_stopped_all_the_same() {
    in_child(
        "procs=1,slice=100us",
        "signals::who_blocks_everything_is_stopped_all_the_same",
        || {
            beside_others(|| {
                // SAFETY: all-zero is storage for the call below.
                let mut all = set_of(&[]);
                // SAFETY: fills the set, which is ours.
                unsafe { libc::sigfillset(&mut all) };
                let before = change(libc::SIG_SETMASK, &all);
                assert!(!contains(&before, libc::SIGURG));
                assert!(contains(&asked(), libc::SIGURG));
                compute_until_stopped(20);
                change(libc::SIG_SETMASK, &before);
                assert!(!contains(&asked(), libc::SIGURG));
            });
        },
    );
}

/// What it did to its thread ends with it.
#[test]
fn a_goroutine_that_ends_with_another_mask_takes_its_thread_with_it() {
    in_child(
        "procs=2,slice=100us",
        "signals::a_goroutine_that_ends_with_another_mask_takes_its_thread_with_it",
        || {
            beside_others(|| {
                for _ in 0..20 {
                    let block = || {
                        change(libc::SIG_BLOCK, &set_of(&[libc::SIGUSR1]));
                    };
                    go(block).join().unwrap();
                    compute_until_stopped(1);
                }
            });
        },
    );
}

fn install(signal: i32, handler: extern "C" fn(i32), flags: i32) -> libc::sigaction {
    // SAFETY: all-zero is a valid action.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut old = new;
    new.sa_sigaction = handler as *const () as usize;
    new.sa_flags = flags;
    // SAFETY: both are ours; the handlers of these tests touch atomics only.
    assert_eq!(unsafe { libc::sigaction(signal, &new, &mut old) }, 0);
    old
}

fn installed(signal: i32) -> libc::sigaction {
    // SAFETY: all-zero is a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only asks.
    assert_eq!(unsafe { libc::sigaction(signal, null(), &mut action) }, 0);
    action
}

static CALLS: AtomicU64 = AtomicU64::new(0);

// One that may be inlined has an address in each unit of code.
#[inline(never)]
extern "C" fn count(_: i32) {
    CALLS.fetch_add(1, SeqCst);
}

#[inline(never)]
extern "C" fn count_tens(_: i32) {
    CALLS.fetch_add(10, SeqCst);
}

/// The kernel merges a signal with one that waits for the same thread: then it never arrives.
fn raise_urgent_until(arrived: impl Fn() -> bool) {
    while !arrived() {
        // SAFETY: the handler is one of those above.
        unsafe { libc::raise(libc::SIGURG) };
    }
}

/// The runtime's own never come to it, and it doesn't take them away.
#[test]
fn a_users_handler_for_sigurg_gets_what_is_not_ours() {
    in_child(
        "procs=1,slice=100us",
        "signals::a_users_handler_for_sigurg_gets_what_is_not_ours",
        || {
            install(libc::SIGURG, count, 0);
            beside_others(|| {
                assert_eq!(installed(libc::SIGURG).sa_sigaction, count as *const () as usize);
                compute_until_stopped(200);
                assert_eq!(CALLS.load(SeqCst), 0);
                for n in 1..=10 {
                    compute_until_stopped(10);
                    raise_urgent_until(|| CALLS.load(SeqCst) == n);
                }
                let old = install(libc::SIGURG, count_tens, libc::SA_RESTART);
                assert_eq!(old.sa_sigaction, count as *const () as usize);
                compute_until_stopped(10);
                raise_urgent_until(|| CALLS.load(SeqCst) == 20);
                // SAFETY: ignoring is no code.
                let old = unsafe { libc::signal(libc::SIGURG, libc::SIG_IGN) };
                assert_eq!(old, count_tens as *const () as usize);
                compute_until_stopped(10);
                // SAFETY: ignored.
                unsafe { libc::raise(libc::SIGURG) };
                assert_eq!(CALLS.load(SeqCst), 20);
            });
        },
    );
}

static OTHERS_TURNS: AtomicU64 = AtomicU64::new(0);
static IN_HANDLER: AtomicI32 = AtomicI32::new(0);

extern "C" fn compute_in_handler(_: i32) {
    let (me, before) = (tid(), OTHERS_TURNS.load(SeqCst));
    while OTHERS_TURNS.load(SeqCst) < before + 20 {
        assert_eq!(tid(), me);
    }
    IN_HANDLER.store(me, SeqCst);
}

/// With SA_NODEFER and an empty mask nothing in the kernel's context tells that a handler runs.
fn nodefer(before_start: bool) {
    if before_start {
        install(libc::SIGUSR1, compute_in_handler, libc::SA_NODEFER);
    }
    run(move || {
        if !before_start {
            install(libc::SIGUSR1, compute_in_handler, libc::SA_NODEFER);
            let action = installed(libc::SIGUSR1);
            assert!(!contains(&action.sa_mask, libc::SIGSTKFLT));
        }
        let other = go(|| {
            while !STOP.load(SeqCst) {
                OTHERS_TURNS.fetch_add(1, SeqCst);
                thread::yield_now();
            }
        });
        for _ in 0..5 {
            // SAFETY: the handler is the one above.
            unsafe { libc::raise(libc::SIGUSR1) };
        }
        STOP.store(true, SeqCst);
        other.join().unwrap();
    });
    let seen = runtime::preemptions();
    assert!(seen.frozen > 0 && seen.in_user_handler > 0, "{seen:?}");
    assert_ne!(IN_HANDLER.load(SeqCst), 0);
}

#[test]
fn handlers_that_block_nothing_are_recognised() {
    in_child("procs=1,slice=100us", "signals::handlers_that_block_nothing_are_recognised", || {
        nodefer(false)
    });
}

#[test]
fn handlers_from_before_the_start_are_recognised() {
    in_child(
        "procs=1,slice=100us",
        "signals::handlers_from_before_the_start_are_recognised",
        || nodefer(true),
    );
}

/// The kernel takes it back when the handler returns.
#[test]
fn a_mask_changed_in_a_handler_is_the_handlers() {
    extern "C" fn handler(_: i32) {
        let old = change(libc::SIG_BLOCK, &set_of(&[libc::SIGUSR2]));
        assert!(contains(&old, libc::SIGUSR1));
        assert!(contains(&asked(), libc::SIGUSR2));
        CALLS.fetch_add(1, SeqCst);
    }
    in_child("procs=2,slice=100us", "signals::a_mask_changed_in_a_handler_is_the_handlers", || {
        install(libc::SIGUSR1, handler, 0);
        beside_others(|| {
            for n in 1..=20 {
                // SAFETY: the handler is the one above.
                unsafe { libc::raise(libc::SIGUSR1) };
                assert_eq!(CALLS.load(SeqCst), n);
                assert!(!contains(&asked(), libc::SIGUSR2));
                compute_until_stopped(1);
            }
            let me = tid();
            while tid() == me {
                compute_until_stopped(1);
            }
        });
    });
}

/// Nothing of ours comes through to other programs.
#[test]
fn a_child_process_has_the_mask_the_program_started_with() {
    in_child(
        "procs=2,slice=100us",
        "signals::a_child_process_has_the_mask_the_program_started_with",
        || {
            let blocked = || {
                let mut grep = std::process::Command::new("grep");
                let output = grep.args(["SigBlk", "/proc/self/status"]).output().unwrap();
                String::from_utf8(output.stdout).unwrap()
            };
            let expected = blocked();
            beside_others(move || {
                for _ in 0..5 {
                    assert_eq!(blocked(), expected);
                }
            });
        },
    );
}
