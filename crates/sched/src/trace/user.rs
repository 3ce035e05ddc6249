//! What users say of their own program: tasks, regions, logs.

use super::{by_running, is_on, outside, site_of};
use crate::goroutine::GRef;
use crate::machine::Inside;
use gosched_trace_format::Kind;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers of the user's strings are above those of [`words`](super::words).
static NEXT_TEXT: AtomicU64 = AtomicU64::new(1 << 20);
static NEXT_TASK: AtomicU64 = AtomicU64::new(1);

/// Whether a trace is being recorded. Go's `trace.IsEnabled`. See the facade.
#[must_use]
pub fn is_enabled() -> bool {
    is_on()
}

/// Writes an event of the calling goroutine, with up to two texts; in which generation, or 0.
fn put(
    texts: [&str; 2],
    site: &'static Location<'static>,
    event: impl FnOnce([u64; 2], u64) -> (Kind, [u64; 4], usize),
) -> u64 {
    if !is_on() {
        return 0;
    }
    let Some(inside) = Inside::enter() else { return 0 };
    let mut said = 0;
    by_running(|section, g: GRef| {
        let ids = texts.map(|text| {
            if text.is_empty() {
                return 0;
            }
            // ORDERING: Relaxed; only uniqueness matters.
            let id = NEXT_TEXT.fetch_add(1, Relaxed);
            outside::text(section, id, text);
            id
        });
        let (kind, args, count) = event(ids, site_of(g, site));
        section.put_slice(kind, &args[..count]);
        said = section.generation;
    });
    inside.leave();
    said
}

/// Whether what was said in generation `said` belongs to the trace that is on.
fn is_of_this_trace(said: u64) -> bool {
    // ORDERING: Relaxed; written before the trace began.
    said != 0 && is_on() && said >= u64::from(super::FIRST.load(Relaxed))
}

/// Something that several goroutines work on. Go's `trace.Task`. See the facade.
#[derive(Debug)]
pub struct Task {
    id: u64,
    said: u64,
}

impl Task {
    /// Begins one.
    #[track_caller]
    #[must_use]
    pub fn new(name: &str) -> Task {
        Task::begin(name, 0, Location::caller())
    }

    /// Begins one that is part of this one.
    #[track_caller]
    #[must_use]
    pub fn child(&self, name: &str) -> Task {
        Task::begin(name, self.id, Location::caller())
    }

    fn begin(name: &str, parent: u64, site: &'static Location<'static>) -> Task {
        // ORDERING: Relaxed; only uniqueness matters.
        let id = NEXT_TASK.fetch_add(1, Relaxed);
        let said = put([name, ""], site, |[name, _], stack| {
            (Kind::UserTaskBegin, [id, parent, name, stack], 4)
        });
        Task { id, said }
    }

    /// Begins a region of the calling goroutine that belongs to this task.
    #[track_caller]
    pub fn region<'a>(&self, name: &'a str) -> Region<'a> {
        Region::begin(self.id, name, Location::caller())
    }

    /// Notes something about this task.
    #[track_caller]
    pub fn log(&self, category: &str, message: &str) {
        log_of(self.id, category, message, Location::caller());
    }
}

impl Drop for Task {
    #[track_caller]
    fn drop(&mut self) {
        if is_of_this_trace(self.said) {
            let id = self.id;
            put(["", ""], Location::caller(), |_, stack| (Kind::UserTaskEnd, [id, stack, 0, 0], 2));
        }
    }
}

/// A part of what a goroutine does, until it is dropped. Go's `trace.StartRegion`. See the facade.
#[derive(Debug)]
#[must_use = "a region ends when it is dropped"]
pub struct Region<'a> {
    task: u64,
    name: &'a str,
    said: u64,
    /// It ends on the goroutine that it began on.
    not_send: PhantomData<*const ()>,
}

impl<'a> Region<'a> {
    /// Begins one that belongs to no task.
    #[track_caller]
    pub fn new(name: &'a str) -> Region<'a> {
        Region::begin(0, name, Location::caller())
    }

    fn begin(task: u64, name: &'a str, site: &'static Location<'static>) -> Region<'a> {
        let said = put([name, ""], site, |[name, _], stack| {
            (Kind::UserRegionBegin, [task, name, stack, 0], 3)
        });
        Region { task, name, said, not_send: PhantomData }
    }
}

impl Drop for Region<'_> {
    #[track_caller]
    fn drop(&mut self) {
        if is_of_this_trace(self.said) {
            let (task, name) = (self.task, self.name);
            put([name, ""], Location::caller(), |[name, _], stack| {
                (Kind::UserRegionEnd, [task, name, stack, 0], 3)
            });
        }
    }
}

/// Notes something. Go's `trace.Log`. See the facade.
#[track_caller]
pub fn log(category: &str, message: &str) {
    log_of(0, category, message, Location::caller());
}

fn log_of(task: u64, category: &str, message: &str, site: &'static Location<'static>) {
    put([category, message], site, |[category, message], stack| {
        (Kind::UserLog, [task, category, message, stack], 4)
    });
}
