//! The last dump, before the process ends: in a signal handler, or inside the runtime.
//!
//! Names of functions need memory and locks, which whoever was interrupted may hold. So the starter's
//! thread writes the dump, which may allocate, and the one whose process ends waits. If there is no
//! progress for some seconds, the lock that is missing will not come back: the rest is written without
//! names.

use crate::frames::Names;
use crate::goroutine::GRef;
use crate::{dump, fleet};
use gosched_base::{Lock, Parker, Stderr};
use std::fmt::Write;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use std::time::Duration;

/// How long nothing may happen. Reading a large program's names takes a second or two.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who writes.
const NOBODY: u32 = 0;
const ASKED: u32 = 1;
const WRITING: u32 = 2;
const DONE: u32 = 3;
/// The one who waited goes on.
const TAKEN: u32 = 4;

static WRITER: AtomicU32 = AtomicU32::new(NOBODY);
/// How many goroutines were written.
static WRITTEN: AtomicU32 = AtomicU32::new(0);
static REQUEST: Lock<Option<Request>> = Lock::new(None);
static WAITER: Parker = Parker::new();
/// Where a writer that came too late waits for the end.
static STOPPED: Parker = Parker::new();

/// What is to be written.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    /// The goroutine that comes first, without which there is no one.
    pub(crate) cause: Option<GRef>,
    /// Where it stands.
    pub(crate) at: Option<[usize; 3]>,
    /// Its first line was written already.
    pub(crate) is_headed: bool,
}

/// Writes the dump of a process that ends, as far as `GOSCHED=traceback` allows. In a signal handler or
/// inside the runtime.
pub(crate) fn write(request: Request) {
    // ORDERING: AcqRel; one asks, and the lock carries the request.
    if WRITER.compare_exchange(NOBODY, ASKED, AcqRel, Acquire).is_err() {
        // Another thread ends the process too.
        return write_after(0, request);
    }
    *REQUEST.lock() = Some(request);
    fleet::call_starter();
    // ORDERING: Relaxed; only whether it changes.
    let mut before = WRITTEN.load(Relaxed);
    while !WAITER.sleep_for(PATIENCE) {
        // ORDERING: Relaxed; as above.
        let now = WRITTEN.load(Relaxed);
        if std::mem::replace(&mut before, now) == now {
            break;
        }
    }
    // ORDERING: AcqRel; the writer looks before each goroutine.
    if WRITER.swap(TAKEN, AcqRel) != DONE {
        // ORDERING: Relaxed; a number.
        write_after(WRITTEN.load(Relaxed), request);
    }
}

/// Writes all but the first ones, without names.
fn write_after(written: u32, request: Request) {
    let mut index = 0;
    dump::for_each_of(request, |part| {
        if index >= written {
            let _ = part.write(&mut Stderr, Some(&mut Names::unknown()));
        }
        index += 1;
    });
}

/// On the starter's thread.
pub(crate) fn write_if_asked() {
    // ORDERING: AcqRel; the one who waits may have lost its patience.
    if WRITER.compare_exchange(ASKED, WRITING, AcqRel, Acquire).is_err() {
        return;
    }
    let mut request = REQUEST.lock();
    let Some(request) = request.take() else { return };
    let (mut names, mut text) = (Names::known(), String::new());
    dump::for_each_of(request, |part| {
        text.clear();
        let _ = part.write(&mut text, Some(&mut names));
        // ORDERING: Acquire pairs with the swap in `write`.
        while WRITER.load(Acquire) == TAKEN {
            // The process is about to end.
            STOPPED.sleep();
        }
        let _ = Stderr.write_str(&text);
        // ORDERING: Relaxed; a number.
        WRITTEN.fetch_add(1, Relaxed);
    });
    // ORDERING: AcqRel; see `write`.
    if WRITER.compare_exchange(WRITING, DONE, AcqRel, Acquire).is_ok() {
        WAITER.wake();
    }
}
