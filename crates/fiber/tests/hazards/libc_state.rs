//! What libc keeps per thread: the CPU's number, errno, the locale, the thread's own name for
//! itself.

use crate::harness::{ALL, BLOCKS, coroutine, in_each, moved, on_thread, skip};
use gosched_fiber::suspend;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[test]
fn the_cpu_is_the_one_that_runs_it() {
    in_each(ALL, "libc_state::the_cpu_is_the_one_that_runs_it", |_| {
        // SAFETY: an all-zero set is empty.
        let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: writes the set, which is ours.
        unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &mut allowed) };
        let mut cpus = 0;
        for cpu in 0..libc::CPU_SETSIZE as usize {
            // SAFETY: a number below the set's size.
            if !unsafe { libc::CPU_ISSET(cpu, &allowed) } {
                continue;
            }
            cpus += 1;
            on_thread(move || on_cpu(cpu));
        }
        if cpus < 2 {
            skip("one CPU only");
        }
    });
}

/// Binds this thread to `cpu` and asks there, from a coroutine.
fn on_cpu(cpu: usize) {
    let bind = move || {
        // SAFETY: an all-zero set is empty.
        let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: a number below the set's size.
        unsafe { libc::CPU_SET(cpu, &mut one) };
        // SAFETY: reads the set.
        assert_eq!(unsafe { libc::sched_setaffinity(0, size_of_val(&one), &one) }, 0);
    };
    bind();
    let mut c = coroutine(move || {
        if gosched_fiber::tls::kind() == gosched_fiber::tls::Kind::Threads {
            bind();
        }
        // SAFETY: no arguments.
        assert_eq!(unsafe { libc::sched_getcpu() }, cpu as i32);
    });
    assert!(c.resume());
}

fn errno() -> *mut i32 {
    // SAFETY: only tells an address.
    unsafe { libc::__errno_location() }
}

fn get_errno() -> i32 {
    // SAFETY: the caller's own errno.
    unsafe { errno().read() }
}

fn set_errno(value: i32) {
    // SAFETY: the caller's own errno.
    unsafe { errno().write(value) };
}

#[test]
fn errno_is_the_coroutines_and_starts_at_zero() {
    in_each(ALL, "libc_state::errno_is_the_coroutines_and_starts_at_zero", |_| {
        for _ in 0..20 {
            set_errno(1);
            let mut c = coroutine(|| {
                assert_eq!(get_errno(), 0);
                set_errno(2);
                suspend();
                assert_eq!(get_errno(), 2);
            });
            assert!(!c.resume());
            set_errno(3);
            on_thread(move || assert!(c.resume()));
            assert_eq!(get_errno(), 3);
        }
    });
}

fn use_locale(locale: libc::locale_t) -> libc::locale_t {
    // SAFETY: a live locale, the global one, or null, which only asks.
    unsafe { libc::uselocale(locale) }
}

#[test]
fn the_locale_is_global_again_for_the_next_one() {
    in_each(ALL, "libc_state::the_locale_is_global_again_for_the_next_one", |_| {
        let global = use_locale(std::ptr::null_mut());
        // SAFETY: a terminated name; the C locale always exists.
        let own =
            unsafe { libc::newlocale(libc::LC_ALL_MASK, c"C".as_ptr(), std::ptr::null_mut()) };
        assert!(!own.is_null());
        let (global, own) = (global as usize, own as usize);
        for _ in 0..20 {
            moved(move || {
                assert_eq!(use_locale(std::ptr::null_mut()) as usize, global);
                use_locale(own as libc::locale_t);
                assert_eq!(use_locale(std::ptr::null_mut()) as usize, own);
            });
        }
    });
}

/// Character tables hang off the block and are set by libc when a thread starts.
#[test]
fn characters_have_their_classes() {
    in_each(ALL, "libc_state::characters_have_their_classes", |_| {
        moved(|| {
            // SAFETY: no memory is passed.
            assert_ne!(unsafe { libc::isalpha(i32::from(b'a')) }, 0);
            // SAFETY: as above.
            assert_eq!(unsafe { libc::toupper(i32::from(b'a')) }, i32::from(b'A'));
        });
    });
}

// SAFETY: it only tells an address.
unsafe extern "C" {
    safe fn __ctype_b_loc() -> *mut usize;
}

/// The caller's table of character classes.
fn table() -> usize {
    // SAFETY: the caller's own word.
    unsafe { __ctype_b_loc().read() }
}

/// A block that was used before `setlocale` has that time's tables.
#[test]
fn tables_are_those_of_the_global_locale_of_its_time() {
    in_each(ALL, "libc_state::tables_are_those_of_the_global_locale_of_its_time", |_| {
        let before = table();
        for _ in 0..3 {
            moved(move || assert_eq!(table(), before));
        }
        // SAFETY: a terminated name; no other thread uses the locale now.
        if unsafe { libc::setlocale(libc::LC_ALL, c"C.UTF-8".as_ptr()) }.is_null() {
            return skip("there is no locale C.UTF-8 here");
        }
        let now = std::thread::spawn(table).join().expect("it does not panic");
        assert_ne!(now, before, "another locale has other tables");
        for _ in 0..3 {
            moved(move || assert_eq!(table(), now));
        }
    });
}

#[test]
fn an_error_of_the_loader_is_not_told_to_the_next_one() {
    in_each(ALL, "libc_state::an_error_of_the_loader_is_not_told_to_the_next_one", |_| {
        for told in [false, true].repeat(10) {
            moved(move || {
                // SAFETY: no arguments.
                assert!(unsafe { libc::dlerror() }.is_null(), "somebody else's");
                let name = c"gosched_has_no_such_symbol";
                // SAFETY: a terminated name.
                assert!(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.is_null());
                // SAFETY: no arguments.
                assert!(!told || !unsafe { libc::dlerror() }.is_null(), "its own");
            });
        }
    });
}

#[test]
fn names_are_resolved() {
    in_each(ALL, "libc_state::names_are_resolved", |_| {
        moved(|| {
            let found = std::net::ToSocketAddrs::to_socket_addrs("localhost:80");
            if let Err(error) = found {
                skip(&format!("localhost is not resolved here: {error}"));
            }
        });
    });
}

/// A coroutine's `pthread_t` is known to libc as a detached thread: to join or detach it is an
/// error that returns at once. (Not for `Threads`, whose threads std joins.)
#[test]
fn joining_and_detaching_it_from_outside_fails_at_once() {
    static SELF: AtomicUsize = AtomicUsize::new(0);
    in_each(BLOCKS, "libc_state::joining_and_detaching_it_from_outside_fails_at_once", |_| {
        let mut c = coroutine(|| {
            // SAFETY: no preconditions.
            SELF.store(unsafe { libc::pthread_self() } as usize, SeqCst);
            suspend();
        });
        assert!(!c.resume());
        let thread = SELF.load(SeqCst) as libc::pthread_t;
        // SAFETY: the thread's control block stays valid for ever.
        let joined = unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
        assert_eq!(joined, libc::EINVAL);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::pthread_detach(thread) }, libc::EINVAL);
        // SAFETY: as above.
        let signalled = unsafe { libc::pthread_kill(thread, 0) };
        assert_eq!(signalled, libc::ESRCH, "no kernel thread has its number");
        assert!(c.resume());
    });
}
