//! Shared libraries, loaded at start and late, and their thread-locals.

use crate::carry::{Carriers, coroutine, hop};
use crate::step::Step;
use std::collections::HashSet;
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::{Arc, Mutex};
use std::thread;

pub(crate) const STEPS: &[Step] = &[
    Step::inside("dlopen of libm", libm),
    Step::outside("cdylib loaded at start", |c| counter_on_reuse(c, c"libstart_own_std.so")),
    Step::outside("cdylib with the shared std", |c| counter_on_reuse(c, c"libstart_shared_std.so")),
    Step::outside("cdylib loaded late", |c| counter_on_reuse(c, late(LATE))),
    Step::outside("static thread-locals of a late library", late_static),
    Step::outside("library unloaded and loaded again", unloaded_and_again),
];

const LATE: &str = env!("LATE_LIBRARY");
const LATE_DYNAMIC: &str = env!("LATE_DYNAMIC_LIBRARY");
const LATE_STATIC: &str = env!("LATE_STATIC_LIBRARY");

/// A path for the loader; kept for ever.
fn late(path: &str) -> &'static CStr {
    Box::leak(CString::new(path).unwrap().into_boxed_c_str())
}

/// An open library. Never closed, unless by hand.
#[derive(Clone, Copy)]
struct Library(*mut c_void);

// SAFETY: a handle of the loader's, which any thread may use.
unsafe impl Send for Library {}

impl Library {
    fn open(path: &CStr) -> Library {
        // SAFETY: the libraries of this workspace do nothing when they are loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{path:?}");
        Library(handle)
    }

    /// # Safety
    /// * `F` is the type of the library's function `name`.
    unsafe fn function<F: Copy>(self, name: &CStr) -> F {
        // SAFETY: an open library and a terminated name.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!address.is_null(), "{name:?}");
        // SAFETY: by the caller; functions are pointers.
        unsafe { std::mem::transmute_copy(&address) }
    }
}

fn libm() {
    let library = Library::open(c"libm.so.6");
    hop();
    // SAFETY: the C standard's.
    let cos: extern "C" fn(f64) -> f64 = unsafe { library.function(c"cos") };
    assert_eq!(cos(0.0), 1.0);
    hop();
    // SAFETY: opened above; it stays loaded for others.
    assert_eq!(unsafe { libc::dlclose(library.0) }, 0);
}

type Counter = extern "C" fn() -> u64;

/// The thread-locals of `tests/fixtures/counter.rs`, in the library at `path`.
fn counter_on_reuse(carriers: &Carriers, path: &CStr) {
    // Fibers that live while the library is loaded, if it is not yet.
    let ready = Arc::new(Mutex::new(None::<[Counter; 3]>));
    let work = || {
        let (ready, mut checks) = (ready.clone(), Vec::new());
        coroutine(move || {
            hop();
            let [next, thread, _] = ready.lock().unwrap().unwrap();
            for i in 7..12 {
                checks.push((next(), i, thread()));
                hop();
            }
            assert!(checks.iter().all(|(n, i, t)| n == i && *t == checks[0].2), "{checks:?}");
        })
    };
    let early = carriers.start_all((0..6).map(|_| work()).collect());
    let library = Library::open(path);
    let functions = [c"counter_next", c"counter_thread", c"counter_drops"];
    // SAFETY: all three have this type.
    let functions = functions.map(|name| unsafe { library.function::<Counter>(name) });
    *ready.lock().unwrap() = Some(functions);
    let drops = functions[2];
    carriers.finish_all(early);
    assert_eq!(drops(), 6);
    for i in 7..=20 {
        carriers.drive(vec![work()]);
        assert_eq!(drops(), i);
    }
    let seen = Arc::new(Mutex::new(HashSet::new()));
    for i in 1..=20 {
        let seen = seen.clone();
        carriers.run(move || assert!(seen.lock().unwrap().insert(functions[1]()), "{i}"));
    }
}

type Next = extern "C" fn() -> c_int;

/// The loader initialises them in every thread there is, so that fibers from before have them too.
fn late_static(carriers: &Carriers) {
    let loaded = Arc::new(Mutex::new(None::<Next>));
    let work = || {
        let loaded = loaded.clone();
        coroutine(move || {
            hop();
            let next = loaded.lock().unwrap().unwrap();
            assert_eq!(next(), 42);
            hop();
            assert_eq!(next(), 44);
        })
    };
    let early = carriers.start_all((0..6).map(|_| work()).collect());
    let library = Library::open(late(LATE_STATIC));
    // SAFETY: `tests/fixtures/late.c`.
    let next: Next = unsafe { library.function(c"late_next") };
    *loaded.lock().unwrap() = Some(next);
    assert_eq!(thread::spawn(move || next()).join().unwrap(), 42);
    carriers.finish_all(early);
    for _ in 0..20 {
        carriers.drive(vec![work()]);
    }
    carriers.drive((0..20).map(|_| work()).collect());
}

/// Its thread-locals are outside the static area, each in memory that a thread allocates when it
/// first uses them; the numbers of modules are used again.
fn unloaded_and_again(carriers: &Carriers) {
    for round in 0..10 {
        let library = Library::open(late(LATE_DYNAMIC));
        // SAFETY: `tests/fixtures/late.c`.
        let next: Next = unsafe { library.function(c"late_next") };
        let work = || {
            coroutine(move || {
                assert_eq!(next(), 42);
                hop();
                assert_eq!(next(), 44);
            })
        };
        carriers.drive((0..round + 1).map(|_| work()).collect());
        // SAFETY: nothing of it is used after this.
        assert_eq!(unsafe { libc::dlclose(library.0) }, 0);
        assert!(!is_loaded(late(LATE_DYNAMIC)), "it stayed loaded");
    }
}

fn is_loaded(path: &CStr) -> bool {
    // SAFETY: only asks.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    // SAFETY: gives back what the question has added, if anything.
    !handle.is_null() && unsafe { libc::dlclose(handle) } == 0
}
