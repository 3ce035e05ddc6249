//! Threads of the runtime's own, made past std.
//!
//! A thread of std's takes memory for a signal stack before it does anything else, and ends the
//! process if there is none, when its maker can't be told any more. It registers destructors of
//! thread-locals as well, which libc does under a lock of the loader's. One of ours begins with its
//! body and needs nothing that its maker did not have: what can be refused is refused to the maker.
//!
//! To std it is a thread that it has not made: `std::thread::current()` has no name there, and a
//! panic that leaves the body ends the process.

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// What a thread does.
pub trait Body: Sync + 'static {
    /// Runs on the thread, from its first instruction to its end, with the signal mask of its maker.
    fn run(&'static self);
}

impl Body for fn() {
    fn run(&'static self) {
        self();
    }
}

/// Starts a detached thread that runs `body`, on a stack of `stack_bytes`: more if libc's own part
/// of it needs more, and libc's default if nothing is said. Not inside the runtime: libc allocates,
/// and with a size the loader's lock is taken.
///
/// ```
/// use gosched_fiber::thread;
/// use std::sync::OnceLock;
///
/// static WORK: fn() = || {
///     thread::set_name(c"example");
///     DONE.set(6 * 7).unwrap();
/// };
/// static DONE: OnceLock<u32> = OnceLock::new();
///
/// thread::start(&WORK, Some(256 << 10)).unwrap();
/// assert_eq!(*DONE.wait(), 42);
/// ```
///
/// # Errors
/// What `pthread_create` reports: `EAGAIN` at a limit of threads and without memory for the stack.
pub fn start<B: Body>(body: &'static B, stack_bytes: Option<usize>) -> io::Result<()> {
    let mut attributes = Attributes::new()?;
    attributes.set_detached()?;
    if let Some(bytes) = stack_bytes {
        attributes.set_stack(bytes)?;
    }
    let mut thread = MaybeUninit::uninit();
    let argument = ptr::from_ref(body).cast_mut().cast();
    // SAFETY: the thread's number is written to memory of ours, the attributes are initialised, and
    // `begin::<B>` is given what it asks for.
    done(unsafe { libc::pthread_create(thread.as_mut_ptr(), &attributes.0, begin::<B>, argument) })
}

extern "C" fn begin<B: Body>(body: *mut c_void) -> *mut c_void {
    // SAFETY: `start` passes a reference to a `B` that lives for ever and may be shared.
    let body: &'static B = unsafe { &*body.cast_const().cast() };
    body.run();
    ptr::null_mut()
}

/// Names the calling thread for the system's tools, which show 15 bytes.
pub fn set_name(name: &CStr) {
    // SAFETY: a terminated name.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

fn done(error: c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// What a thread is made with.
struct Attributes(libc::pthread_attr_t);

impl Attributes {
    fn new() -> io::Result<Attributes> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: initialises memory of ours.
        done(unsafe { libc::pthread_attr_init(raw.as_mut_ptr()) })?;
        // SAFETY: initialised by the call above.
        Ok(Attributes(unsafe { raw.assume_init() }))
    }

    fn set_detached(&mut self) -> io::Result<()> {
        // SAFETY: initialised; the value is one of two.
        done(unsafe {
            libc::pthread_attr_setdetachstate(&mut self.0, libc::PTHREAD_CREATE_DETACHED)
        })
    }

    fn set_stack(&mut self, bytes: usize) -> io::Result<()> {
        let bytes = bytes.max(self.stack_min());
        // SAFETY: initialised.
        done(unsafe { libc::pthread_attr_setstacksize(&mut self.0, bytes) })
    }

    /// The least that libc takes, its thread-locals included, which are on the stack. Asked as std
    /// asks; where there is no such function, as in musl, they are beside the stack.
    fn stack_min(&self) -> usize {
        type Ask = unsafe extern "C" fn(*const libc::pthread_attr_t) -> usize;
        static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
        // ORDERING: Relaxed for both; the code it points to is not new.
        let mut found = FOUND.load(Relaxed);
        if found.is_null() {
            // SAFETY: a terminated name.
            found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__pthread_get_minstack".as_ptr()) };
            FOUND.store(found, Relaxed);
        }
        // SAFETY: the function of that name has that signature; null becomes `None`.
        let ask = unsafe { mem::transmute::<*mut c_void, Option<Ask>>(found) };
        // SAFETY: reads the attributes, which are initialised.
        ask.map_or(libc::PTHREAD_STACK_MIN, |ask| unsafe { ask(&self.0) })
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised, and not used any more.
        unsafe { libc::pthread_attr_destroy(&mut self.0) };
    }
}

#[cfg(all(test, not(miri)))]
#[path = "thread/tests.rs"]
mod tests;
