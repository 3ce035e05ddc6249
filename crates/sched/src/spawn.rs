//! Making a goroutine.

use crate::attention::IDLE;
use crate::current::current;
use crate::goroutine::GRef;
use crate::machine::{Inside, Machine};
use crate::plant::{Place, Wake};
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::task::{self, JoinHandle, TaskHeader};
use crate::{chaos, forked, idle, labels, names, near, park, plant, start, transition};
use gosched_fiber::stack::Class;

use std::fmt;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What a builder can say about a goroutine.
#[derive(Clone, Debug, Default)]
pub struct SpawnOptions {
    /// For dumps and panics.
    pub name: Option<String>,
    /// Bytes of stack at least; the configured default if not given.
    pub stack_bytes: Option<usize>,
    /// The NUMA node to begin on, counted from 0; without effect if there is no such node.
    pub node: Option<usize>,
    /// Run on the machine's thread-locals instead of own ones. Not sound.
    pub shares_tls: bool,
}

/// Why a goroutine could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnError {
    /// No size class is that large.
    StackTooLarge(usize),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::StackTooLarge(bytes) => {
                write!(f, "a stack of {bytes} bytes is larger than any that can be made")
            }
        }
    }
}

impl std::error::Error for SpawnError {}

/// Runs `f` in a new goroutine.
///
/// The closure waits in a place of its own, made here; stack and thread-local block come when the
/// goroutine first runs.
///
/// # Safety
/// * What `f` and its result borrow outlives the goroutine.
/// * `F` and `T` may cross threads (`Send`).
/// * With `shares_tls` nothing that `f` does may keep a reference to a thread-local across a wait.
///
/// # Errors
/// If no stack can be that large.
#[inline]
pub unsafe fn spawn<F: FnOnce() -> T, T>(
    f: F,
    options: SpawnOptions,
    site: &'static Location<'static>,
) -> Result<JoinHandle<T>, SpawnError> {
    let config = start::ensure_started();
    let class = match options.stack_bytes {
        None => config.class,
        Some(bytes) => Class::for_bytes(bytes).ok_or(SpawnError::StackTooLarge(bytes))?,
    };
    let name = options.name.map(Arc::from);
    let describe = |g: GRef, id: u64, parent: u64, task: NonNull<TaskHeader>| {
        // SAFETY: the task is nobody else's before its goroutine is published.
        names::set_identity(g, id, unsafe { task.as_ref() }.name.as_deref());
        g.set_origin(site, parent);
        g.class.set(class);
        g.reset_preemption();
        g.set_shares_tls(options.shares_tls || config.shares_tls);
        g.task.set(Some(task));
        g.permit.clear();
        labels::inherit(g);
    };
    let home = options.node.and_then(near::home);
    let Some(inside) = Inside::enter() else {
        // SAFETY: by the caller.
        let task = unsafe { task::make_outside(f, name) };
        let (g, id) = spawn_from_outside(home, |g, id, parent| describe(g, id, parent, task));
        return Ok(JoinHandle::new(task, g, id));
    };
    // SAFETY: by the caller.
    let (inside, task) = unsafe { task::make(inside, f, name) };
    let describe = |g, id, parent| describe(g, id, parent, task);
    let (g, id) = match home {
        Some(node) if inside.processor().place.node != node => {
            spawn_to_node(inside, home, describe)
        }
        _ => spawn_inside(inside, describe),
    };
    Ok(JoinHandle::new(task, g, id))
}

/// Go's `newproc`: the new goroutine runs next on this processor.
#[inline]
fn spawn_inside(inside: Inside, describe: impl FnOnce(GRef, u64, u64)) -> (GRef, u64) {
    plant::here(Place::Spawn);
    let p = inside.processor();
    let parent = inside.machine().current().map_or(0, |g| g.id());
    // SAFETY: this machine holds `p`, inside the runtime.
    let core = unsafe { p.core() };
    let (g, id) = (core.take_descriptor(), core.next_id());
    describe(g, id, parent);
    p.counters.created.add();
    // ORDERING: Relaxed; a trace begins while nobody runs here.
    if p.attention.load(Relaxed) & IDLE == 0 {
        transition::created_untraced(g);
        let filled = park::push_next(p, g);
        idle::wake_one_for_next(Wake::Spawn, filled);
    } else {
        push_attentively(inside.machine(), p, g);
    }
    inside.leave();
    (g, id)
}

/// The end of [`spawn_inside`], if a trace is on or dice decide.
#[cold]
#[inline(never)]
fn push_attentively(machine: &Machine, p: &'static Processor, g: GRef) {
    transition::created_on(machine, p, g);
    if chaos::sends_to_tail(p) {
        park::push_back(p, g);
        idle::wake_one_for(Wake::Spawn);
    } else {
        let filled = park::push_next(p, g);
        idle::wake_one_for_next(Wake::Spawn, filled);
    }
}

/// As [`spawn_inside`], for a processor of another node.
#[cold]
fn spawn_to_node(
    inside: Inside,
    home: Option<u16>,
    describe: impl FnOnce(GRef, u64, u64),
) -> (GRef, u64) {
    let p = inside.processor();
    let parent = inside.machine().current().map_or(0, |g| g.id());
    // SAFETY: this machine holds `p`, inside the runtime.
    let core = unsafe { p.core() };
    let (g, id) = (core.take_descriptor(), core.next_id());
    describe(g, id, parent);
    p.counters.created.add();
    transition::created(g);
    near::push(home.unwrap_or(0), g);
    idle::wake_one_for(Wake::Injected);
    inside.leave();
    (g, id)
}

/// From a plain thread: no lock.
#[cold]
fn spawn_from_outside(home: Option<u16>, describe: impl FnOnce(GRef, u64, u64)) -> (GRef, u64) {
    forked::check();
    let (g, id) = (SCHEDULER.take_free_from_outside(), SCHEDULER.take_ids(1));
    describe(g, id, current().map_or(0, |g| g.id()));
    SCHEDULER.count_created_outside();
    transition::created(g);
    match home {
        None => park::inject(g),
        Some(node) => {
            near::push(node, g);
            idle::wake_one_from_outside();
        }
    }
    (g, id)
}
