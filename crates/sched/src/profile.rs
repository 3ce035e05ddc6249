//! What profiles see of the scheduler. For `gosched-pprof`, not for users.

use crate::frames::{self, Found};
use crate::labels::{self, Labels};
use crate::scheduler::SCHEDULER;
use crate::trace::samples;
use crate::{dump, slab, start};
use gosched_protocol::Status;
use gosched_unwind::Frames;
use gosched_unwind::symbols::Symbols;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A goroutine, as it was seen.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Its number.
    pub id: u64,
    /// What it does, in Go's words.
    pub state: &'static str,
    /// Addresses of its frames; none while it runs on another thread or has not begun.
    pub frames: &'a Frames,
    /// Whether it runs on another thread.
    pub is_elsewhere: bool,
    /// Where it was spawned: file and line.
    pub site: Option<(&'static str, u32)>,
    /// Its labels.
    pub labels: Option<Arc<Labels>>,
}

/// Calls `f` for each goroutine. Outside the runtime.
pub fn each_goroutine(mut f: impl FnMut(&Seen<'_>)) {
    frames::prepare();
    let mut found = Frames::new();
    slab::for_each(|g| {
        let (id, status) = (g.id(), g.status.get());
        if id == 0 || matches!(status, Status::Dead | Status::Idle) {
            return;
        }
        let how = frames::find(g, None, &mut found);
        if how != Found::Frames {
            found = Frames::new();
        }
        f(&Seen {
            id,
            state: dump::words(g, status),
            frames: &found,
            is_elsewhere: how == Found::Elsewhere,
            site: g.origin().map(|(site, _)| (site.file(), site.line())),
            labels: labels::of(g),
        });
    });
}

/// The functions at an address, as in [`Frames`]: a return address. Outside the runtime; it may take long,
/// while others run.
#[must_use]
pub fn symbols_at(pc: usize) -> Symbols {
    frames::symbols_at(pc)
}

/// What a signal handler notes of the code that it has interrupted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interrupted {
    /// The goroutine's number; 0 for other code.
    pub goroutine: u64,
    /// Its labels, for [`labels_at`].
    pub labels: usize,
    /// When, as traces count; 0 if none is on.
    pub time: u64,
}

/// Signal-safe; while [`begin_sampling`] is in force.
#[must_use]
pub fn interrupted() -> Interrupted {
    let goroutine = crate::goroutine_id().unwrap_or(0);
    Interrupted { goroutine, labels: labels::sampled(), time: samples::now() }
}

/// Makes room for what [`tell_trace`] notes. Allocates.
pub fn prepare_for_traces() {
    samples::prepare();
}

/// Has the trace that is on, if any, show that the code which the calling handler has interrupted stands
/// there. Signal-safe; after [`prepare_for_traces`].
pub fn tell_trace(interrupted: &Interrupted, frames: &Frames) {
    samples::note(interrupted.goroutine, interrupted.time, frames);
}

/// How many samples found no room on their way into a trace, since the start.
#[must_use]
pub fn lost_by_traces() -> u64 {
    samples::lost()
}

pub use crate::labels::{begin_sampling, end_sampling, take_garbage};

/// The labels that a sample notes.
///
/// # Safety
/// * The sample is drained for the first time, and what [`take_garbage`] gave since it was taken was not
///   dropped.
#[must_use]
pub unsafe fn labels_at(address: usize) -> Option<Arc<Labels>> {
    // SAFETY: by the caller.
    unsafe { labels::at(address) }
}

/// Starts a thread that no signal comes to, and that deadlocks are found beside.
///
/// # Errors
/// What the system says.
pub fn helper(name: &str, f: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(move || {
        start::block_signals();
        SCHEDULER.machine_started();
        f();
        SCHEDULER.machine_ended();
    })
}
