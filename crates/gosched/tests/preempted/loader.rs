//! Code that libc calls under the loader's locks.

use crate::child::in_child;
use gosched::channel::{Receiver, bounded};
use gosched::{go, run, runtime, thread};
use std::ffi::{CStr, CString, c_int, c_void};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

fn in_callback(mut f: impl FnMut()) {
    unsafe extern "C" fn call(_: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the closure that was passed, which outlives the walk.
        let f = unsafe { &mut *data.cast::<&mut dyn FnMut()>() };
        f();
        // No further module.
        1
    }
    let mut f: &mut dyn FnMut() = &mut f;
    // SAFETY: the callback gets what it expects.
    unsafe { libc::dl_iterate_phdr(Some(call), (&raw mut f).cast()) };
}

/// Returns when the monitor has wanted to stop the caller `times` times, and could not.
fn compute_until_refused(times: u64) {
    let before = runtime::preemptions().flagged;
    while runtime::preemptions().flagged < before + times {
        std::hint::spin_loop();
    }
}

/// With one processor others run only when the goroutine is stopped.
#[test]
fn a_callback_is_not_stopped_and_makes_room_after_it() {
    in_child(
        "procs=1,slice=100us",
        "loader::a_callback_is_not_stopped_and_makes_room_after_it",
        || {
            static OTHERS: AtomicU64 = AtomicU64::new(0);
            static STOP: AtomicBool = AtomicBool::new(false);
            run(|| {
                let other = go(|| {
                    while !STOP.load(SeqCst) {
                        OTHERS.fetch_add(1, SeqCst);
                    }
                });
                for _ in 0..20 {
                    let mut during = 0;
                    in_callback(|| {
                        let before = OTHERS.load(SeqCst);
                        compute_until_refused(5);
                        during = OTHERS.load(SeqCst) - before;
                    });
                    assert_eq!(during, 0, "stopped inside a callback");
                }
                assert!(OTHERS.load(SeqCst) > 0, "made no room after it");
                STOP.store(true, SeqCst);
                other.join().unwrap();
            });
        },
    );
}

/// Goroutines in the queue of a processor whose own can't be stopped, while the other processor
/// always has something to do.
#[test]
fn what_waits_behind_a_goroutine_that_is_not_stopped_runs_elsewhere() {
    in_child(
        "procs=2,slice=100us",
        "loader::what_waits_behind_a_goroutine_that_is_not_stopped_runs_elsewhere",
        || {
            static RAN: AtomicU64 = AtomicU64::new(0);
            static STOP: AtomicBool = AtomicBool::new(false);
            run(|| {
                let hog = || {
                    while !STOP.load(SeqCst) {
                        std::hint::spin_loop();
                    }
                };
                let hogs: Vec<_> = (0..3).map(|_| go(hog)).collect();
                thread::sleep(Duration::from_millis(5));
                for round in 1..=10 {
                    let no_preempt = runtime::NoPreempt::new();
                    let behind: Vec<_> = (0..10).map(|_| go(|| RAN.fetch_add(1, SeqCst))).collect();
                    while RAN.load(SeqCst) < 10 * round {
                        std::hint::spin_loop();
                    }
                    drop(no_preempt);
                    behind.into_iter().for_each(|b| drop(b.join()));
                }
                STOP.store(true, SeqCst);
                hogs.into_iter().for_each(|h| h.join().unwrap());
            });
        },
    );
}

const LIBRARIES: [&CStr; 3] = [c"libresolv.so.2", c"libnss_files.so.2", c"libBrokenLocale.so.1"];

/// What takes the loader's locks.
fn use_the_loader(i: usize) {
    match i % 4 {
        0 => {
            let name = LIBRARIES[i / 4 % LIBRARIES.len()];
            // SAFETY: a terminated name of a library of libc's.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
            if !handle.is_null() {
                // SAFETY: from `dlopen`, not used any more.
                assert_eq!(unsafe { libc::dlclose(handle) }, 0);
            }
        }
        1 => {
            let text = std::backtrace::Backtrace::force_capture().to_string();
            assert!(text.contains("use_the_loader"), "{text}");
        }
        2 => assert_eq!(std::thread::spawn(move || i).join().unwrap(), i),
        _ => assert_eq!(go(move || i).join().unwrap(), i),
    }
}

/// A callback that waits holds the loader's lock; whoever wants it waits for the callback, and
/// everything gets on afterwards.
#[test]
fn others_get_on_after_a_callback_that_waited() {
    in_child("procs=2", "loader::others_get_on_after_a_callback_that_waited", || {
        run(|| {
            let (enter, entered) = bounded::<()>(1);
            let (release, wait): (_, Receiver<()>) = bounded(1);
            let waiting = go(move || {
                in_callback(|| {
                    enter.send(()).unwrap();
                    wait.recv().unwrap();
                });
            });
            entered.recv().unwrap();
            let users: Vec<_> = (0..32).map(|i| go(move || use_the_loader(i))).collect();
            // Until some of them are asleep in the loader.
            while runtime::counters().undeclared_hand_offs == 0 {
                thread::sleep(Duration::from_millis(1));
            }
            release.send(()).unwrap();
            waiting.join().unwrap();
            users.into_iter().for_each(|u| u.join().unwrap());
        });
    });
}

#[test]
fn callbacks_libraries_backtraces_threads_and_goroutines_at_once() {
    in_child(
        "procs=2,slice=100us",
        "loader::callbacks_libraries_backtraces_threads_and_goroutines_at_once",
        || {
            static STOP: AtomicBool = AtomicBool::new(false);
            run(|| {
                let hogs: Vec<_> = (0..4)
                    .map(|_| {
                        go(|| {
                            while !STOP.load(SeqCst) {
                                in_callback(|| (0..200_000).for_each(|_| std::hint::spin_loop()));
                                (0..10_000).for_each(|_| std::hint::spin_loop());
                            }
                        })
                    })
                    .collect();
                let is_enough = || {
                    let seen = runtime::preemptions();
                    seen.in_place > 50 && seen.flagged > 50
                };
                while !is_enough() {
                    let users: Vec<_> = (0..24)
                        .map(|i| go(move || (0..4).for_each(|n| use_the_loader(i + n))))
                        .collect();
                    users.into_iter().for_each(|u| u.join().unwrap());
                }
                STOP.store(true, SeqCst);
                hogs.into_iter().for_each(|h| h.join().unwrap());
            });
        },
    );
}

/// A goroutine inside a constructor is inside `dlopen`; a library that loads its neighbour by name
/// finds it along its own RUNPATH.
#[test]
fn libraries_load_others_and_constructors_are_not_stopped() {
    in_child(
        "procs=1,slice=100us",
        "loader::libraries_load_others_and_constructors_are_not_stopped",
        constructors,
    );
}

static OTHERS: AtomicU64 = AtomicU64::new(0);
static DURING: AtomicU64 = AtomicU64::new(u64::MAX);

extern "C" fn constructor_computes() {
    let before = OTHERS.load(SeqCst);
    compute_until_refused(5);
    DURING.store(OTHERS.load(SeqCst) - before, SeqCst);
}

const INNER: &str = "int inner(void) { return 7; }";
const OUTER: &str = r#"
#include <dlfcn.h>
#include <stdlib.h>
int outer(void) { return dlopen("libgosched_test_inner.so", RTLD_NOW) != 0; }
__attribute__((constructor)) static void begin(void) {
    void (*f)(void) = (void (*)(void))strtoul(getenv("GOSCHED_TEST_FUNCTION"), 0, 10);
    f();
}
"#;

fn constructors() {
    let folder = std::env::temp_dir().join(format!("gosched-loader-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let build = |name: &str, source: &str| {
        let (c, library) = (folder.join(format!("{name}.c")), folder.join(format!("lib{name}.so")));
        std::fs::write(&c, source).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-Wl,-rpath,$ORIGIN", "-o"]).arg(&library).arg(&c);
        cc.status().map(|status| assert!(status.success())).map(|()| library)
    };
    let built = build("gosched_test_inner", INNER)
        .and_then(|_| build("gosched_test_outer", OUTER))
        .map(|library| CString::new(library.into_os_string().into_encoded_bytes()).unwrap());
    let Ok(library) = built else { return println!("SKIPPED: no C compiler `cc`") };
    let function = (constructor_computes as *const ()).addr().to_string();
    // SAFETY: no other thread of this process uses the environment now.
    unsafe { std::env::set_var("GOSCHED_TEST_FUNCTION", function) };
    run(move || {
        static STOP: AtomicBool = AtomicBool::new(false);
        let other = go(|| {
            while !STOP.load(SeqCst) {
                OTHERS.fetch_add(1, SeqCst);
            }
        });
        // SAFETY: a terminated path; the constructor is the one above.
        let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        assert_eq!(DURING.load(SeqCst), 0, "stopped inside a constructor");
        // SAFETY: a live handle and a terminated name.
        let outer = unsafe { libc::dlsym(handle, c"outer".as_ptr()) };
        // SAFETY: the library's function has this type.
        let outer: extern "C" fn() -> c_int = unsafe { std::mem::transmute(outer) };
        assert_eq!(outer(), 1, "found along its own RUNPATH");
        STOP.store(true, SeqCst);
        other.join().unwrap();
    });
    std::fs::remove_dir_all(folder).unwrap();
}
