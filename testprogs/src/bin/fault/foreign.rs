//! Threads that C has made, unknown to std, with small stacks and a blocked signal mask.

use crate::work::print;
use gosched::channel::{Sender, unbounded};
use gosched::sync::Mutex;
use gosched::{go, run, thread};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

const THREADS: u64 = 8;
const CALLS: u64 = 200;
const STACK_BYTES: usize = 64 << 10;

struct Shared {
    sum: Mutex<u64>,
    results: Sender<u64>,
}

/// What each of the threads does.
extern "C" fn begin(shared: *mut c_void) -> *mut c_void {
    // SAFETY: made from an `Arc` for this thread.
    let shared = unsafe { Arc::from_raw(shared.cast_const().cast::<Shared>()) };
    for call in 0..CALLS {
        let (mine, results) = (shared.clone(), shared.results.clone());
        let g = go(move || {
            *mine.sum.lock().expect("no panic") += 1;
            call
        });
        *shared.sum.lock().expect("no panic") += 1;
        let back = g.join().expect("no panic");
        results.send(back).expect("somebody receives");
        if call % 50 == 0 {
            thread::sleep(Duration::from_micros(200));
        }
    }
    let inner = run(|| go(thread::yield_now).join().is_ok());
    assert!(inner);
    ptr::null_mut()
}

/// The first of them starts the runtime, and there is no main goroutine.
pub(crate) fn call_in() {
    let (results, received) = unbounded();
    let shared = Arc::new(Shared { sum: Mutex::new(0), results });
    let threads: Vec<_> = (0..THREADS).map(|_| start(shared.clone())).collect();
    for thread in threads {
        // SAFETY: made below, joined once.
        assert_eq!(unsafe { libc::pthread_join(thread, ptr::null_mut()) }, 0);
    }
    print("sum", *shared.sum.lock().expect("no panic"));
    drop(shared);
    print("received", received.iter().count());
}

fn start(shared: Arc<Shared>) -> libc::pthread_t {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: storage for the attributes.
    assert_eq!(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) }, 0);
    // SAFETY: initialised above.
    let done = unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK_BYTES) };
    assert_eq!(done, 0);
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    let argument = Arc::into_raw(shared).cast_mut().cast::<c_void>();
    // SAFETY: writes a handle, reads the attributes, and hands on the `Arc`.
    let done =
        unsafe { libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), begin, argument) };
    assert_eq!(done, 0);
    // SAFETY: written above.
    unsafe { thread.assume_init() }
}
