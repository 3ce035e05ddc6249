//! What all machines share.
//!
//! One static: there is one runtime in a process, and it is never shut down.
//!
//! Locks, all leaves: `synced`, the global queue's, `free`. None is held while another is taken.

mod unused;

use crate::config::Settled;
use crate::goroutine::{GRef, GoroutineId};
use crate::machine::Machine;
use crate::near;
use crate::processor::Processor;
use crate::slab;
use crate::spare_descriptors::{PORTION, Spare};
use gosched_base::{CachePadded, Lock, rt_abort};
use gosched_poll::Poller;
use gosched_protocol::{Bell, Lookout, Searchers};
use gosched_runq::{Batch, Global, Injector, Token};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use unused::Unused;

/// Processors there may be. Go's limit was 1,024 for long.
pub(crate) const PROCS_MAX: usize = 1024;
/// Threads there may be at a time; records of ended ones are used again.
pub(crate) const MACHINES_MAX: usize = 1 << 16;
/// Sleeping machines that are looked at for one of the right node.
const SLEEPERS_SEEN: usize = 16;
/// Dead descriptors at hand for plain threads.
const OUTSIDE_FREE: usize = 64;

pub(crate) static SCHEDULER: Scheduler = Scheduler::new();

pub(crate) struct Scheduler {
    /// The queue of all processors.
    pub(crate) global: CachePadded<Global<GRef>>,
    /// Goroutines made runnable by plain threads.
    pub(crate) injected: CachePadded<Injector<GRef>>,
    /// Machines that look for work.
    pub(crate) searchers: CachePadded<Searchers>,
    /// How many processors are idle, and in the upper half how many are at rest. Written by: holders of
    /// `synced`. Read by: anyone.
    unused_processors: CachePadded<AtomicU64>,
    /// How many machines sleep. Written by: holders of `synced`. Read by: anyone.
    sleeping: AtomicU32,
    synced: CachePadded<Lock<Synced>>,
    processors: [AtomicPtr<Processor>; PROCS_MAX],
    procs: AtomicU32,
    made: AtomicU32,
    next_id: CachePadded<AtomicU64>,
    free: CachePadded<Lock<Spare>>,
    outside_free: [AtomicPtr<()>; OUTSIDE_FREE],
    /// How many descriptors plain threads have taken without giving one back.
    outside_debt: AtomicU32,
    created_outside: AtomicU64,
    poller: OnceLock<Poller>,
    /// Whether a machine has the poller.
    pub(crate) polling: AtomicBool,
    /// Whether it sleeps there, and may be claimed.
    pub(crate) poller_bell: Bell,
    /// Whether a machine that sleeps looks at next slots again soon. In a line of its own: read at each
    /// wake-up.
    pub(crate) lookout: CachePadded<Lookout>,
    /// Until when it sleeps at most, in monotonic nanoseconds.
    pub(crate) polls_until: AtomicU64,
    machine_count: AtomicU32,
    machines: [AtomicPtr<Machine>; MACHINES_MAX],
    /// Threads of this process that belong to the runtime or wait in it.
    pub(crate) known_threads: AtomicU32,
    pub(crate) settled: OnceLock<Settled>,
    pub(crate) counts: crate::counters::Global,
}

/// What is guarded by the scheduler's lock.
struct Synced {
    /// Processors that no machine has.
    unused: Unused,
    /// Sleeping machines, last in first out, linked both ways.
    sleeping: *const Machine,
    sleeping_count: u32,
}

/// What becomes of a machine that has slept for long.
pub(crate) enum Overslept {
    /// It is no longer among the sleeping.
    Leaves,
    /// There are few sleepers; it stays among them.
    Stays,
    /// It was taken: a processor is on its way.
    Wanted,
}

// SAFETY: machines are never freed; the pointer is used under the lock.
unsafe impl Send for Synced {}

impl Scheduler {
    const fn new() -> Scheduler {
        Scheduler {
            global: CachePadded::new(Global::new()),
            injected: CachePadded::new(Injector::new()),
            searchers: CachePadded::new(Searchers::new()),
            unused_processors: CachePadded::new(AtomicU64::new(0)),
            sleeping: AtomicU32::new(0),
            synced: CachePadded::new(Lock::new(Synced {
                unused: Unused::new(),
                sleeping: ptr::null(),
                sleeping_count: 0,
            })),
            processors: [const { AtomicPtr::new(ptr::null_mut()) }; PROCS_MAX],
            procs: AtomicU32::new(0),
            made: AtomicU32::new(0),
            next_id: CachePadded::new(AtomicU64::new(1)),
            free: CachePadded::new(Lock::new(Spare::none())),
            outside_free: [const { AtomicPtr::new(ptr::null_mut()) }; OUTSIDE_FREE],
            outside_debt: AtomicU32::new(0),
            created_outside: AtomicU64::new(0),
            poller: OnceLock::new(),
            polling: AtomicBool::new(false),
            poller_bell: Bell::new(),
            lookout: CachePadded::new(Lookout::new()),
            polls_until: AtomicU64::new(u64::MAX),
            machine_count: AtomicU32::new(0),
            machines: [const { AtomicPtr::new(ptr::null_mut()) }; MACHINES_MAX],
            known_threads: AtomicU32::new(0),
            settled: OnceLock::new(),
            counts: crate::counters::Global::new(),
        }
    }

    // ------------------------------------------------------------------ processors

    /// Makes `procs` processors, all idle. Once, at the start.
    pub(crate) fn make_processors(&self, procs: usize) {
        self.prepare_processors(procs as u32);
        for id in (0..procs as u32).rev() {
            self.give_idle(self.processor(id));
        }
        self.note_procs(procs as u32);
    }

    /// No machine uses a processor now.
    fn note_procs(&self, procs: u32) {
        near::note_served(procs);
        for p in self.all_processors() {
            // SAFETY: by the caller nobody is the owner or a thief now; whoever is later gets a
            // processor from the caller first. A single processor's machine is the only one that
            // has any, and so there are no thieves.
            unsafe { p.ring.set_owners_alone(procs == 1) };
        }
        // ORDERING: Release pairs with `procs`.
        self.procs.store(procs, Release);
    }

    /// Makes sure that processors up to `procs` exist. Allocates: before the world is stopped.
    pub(crate) fn prepare_processors(&self, procs: u32) {
        for id in self.made()..procs {
            let p = Processor::leak(id);
            // ORDERING: Release pairs with `processor`.
            self.processors[id as usize].store((p as *const Processor).cast_mut(), Release);
            self.made.store(id + 1, Release);
        }
    }

    /// How many processors were ever made; those above `procs` are out of service.
    pub(crate) fn made(&self) -> u32 {
        // ORDERING: Acquire pairs with `prepare_processors`.
        self.made.load(Acquire)
    }

    /// Every processor that was ever made: timers may be left in those out of service.
    pub(crate) fn all_processors(&self) -> impl Iterator<Item = &'static Processor> {
        (0..self.made()).map(|id| self.processor(id))
    }

    /// Sets GOMAXPROCS. The world is stopped.
    pub(crate) fn set_procs(&self, procs: u32) {
        self.note_procs(procs);
    }

    /// GOMAXPROCS.
    #[inline]
    pub(crate) fn procs(&self) -> u32 {
        // ORDERING: Acquire pairs with `make_processors`.
        self.procs.load(Acquire)
    }

    pub(crate) fn processor(&self, id: u32) -> &'static Processor {
        // ORDERING: Acquire pairs with `make_processors`.
        let p = self.processors[id as usize].load(Acquire);
        // SAFETY: processors are never freed; below `procs` all exist.
        match unsafe { p.as_ref() } {
            Some(p) => p,
            None => rt_abort!("processor {id} does not exist"),
        }
    }

    pub(crate) fn processors(&self) -> impl Iterator<Item = &'static Processor> {
        (0..self.procs()).map(|id| self.processor(id))
    }

    /// Whether something lies in a queue of all processors.
    pub(crate) fn has_work_for_all(&self) -> bool {
        !self.global.is_empty() || !self.injected.is_empty()
    }

    /// Takes a sleeping machine.
    pub(crate) fn take_sleeping(&self) -> Option<&'static Machine> {
        let mut synced = self.synced.lock();
        let machine = synced.take_sleeping();
        self.publish_sleeping(&synced);
        machine
    }

    /// Takes a sleeping machine for `p`: one that was on its node, if the first few show one.
    pub(crate) fn take_sleeping_for(&self, p: &Processor) -> Option<&'static Machine> {
        if near::levels().is_none() {
            return self.take_sleeping();
        }
        let mut synced = self.synced.lock();
        let machine = synced.take_sleeping_of(p.place.node);
        self.publish_sleeping(&synced);
        machine
    }

    /// Takes a sleeping machine whose thread may end, if more than `keep` sleep.
    pub(crate) fn take_surplus_sleeper(&self, keep: u32) -> Option<&'static Machine> {
        let mut synced = self.synced.lock();
        let mut next = synced.sleeping;
        while synced.sleeping_count > keep {
            // SAFETY: machines are never freed.
            let machine = unsafe { next.as_ref() }?;
            if !machine.is_process_main() {
                synced.unlink_sleeping(machine);
                return Some(machine);
            }
            next = machine.next_idle.get();
        }
        None
    }

    /// How many machines sleep, those in the poller or with a locked goroutine not counted.
    pub(crate) fn sleeping_count(&self) -> u32 {
        self.synced.lock().sleeping_count
    }

    /// Puts a machine among the sleeping; how many there are with it. It sleeps on its parker
    /// afterwards.
    pub(crate) fn give_sleeping(&self, m: &'static Machine) -> u32 {
        let mut synced = self.synced.lock();
        synced.push_sleeping(m);
        self.publish_sleeping(&synced);
        synced.sleeping_count
    }

    fn publish_sleeping(&self, synced: &Synced) {
        // ORDERING: Relaxed; see `sleeping_hint`.
        self.sleeping.store(synced.sleeping_count, Relaxed);
    }

    /// As [`sleeping_count`](Scheduler::sleeping_count), without the lock; a hint.
    #[inline]
    pub(crate) fn sleeping_hint(&self) -> u32 {
        // ORDERING: Relaxed; a hint.
        self.sleeping.load(Relaxed)
    }

    /// The sleeping `m` is tired of it.
    pub(crate) fn leave_sleeping(&self, m: &'static Machine, keep: u32) -> Overslept {
        let mut synced = self.synced.lock();
        if !m.is_among_sleeping.get() {
            return Overslept::Wanted;
        }
        if synced.sleeping_count <= keep {
            return Overslept::Stays;
        }
        synced.unlink_sleeping(m);
        self.publish_sleeping(&synced);
        Overslept::Leaves
    }

    // -------------------------------------------------------------------- machines

    /// How many machines were ever made.
    pub(crate) fn machine_count(&self) -> u32 {
        // ORDERING: Relaxed; a hint.
        self.machine_count.load(Relaxed)
    }

    pub(crate) fn next_machine_id(&self) -> u32 {
        // ORDERING: Relaxed; only uniqueness matters.
        self.machine_count.fetch_add(1, Relaxed)
    }

    pub(crate) fn machine_started(&self) {
        // ORDERING: Relaxed; read by the deadlock detector when all is quiet.
        self.known_threads.fetch_add(1, Relaxed);
    }

    pub(crate) fn machine_ended(&self) {
        // ORDERING: Relaxed; as in `machine_started`.
        self.known_threads.fetch_sub(1, Relaxed);
    }

    /// Makes a machine known by its number.
    pub(crate) fn register(&self, machine: &'static Machine) {
        let Some(slot) = self.machines.get(machine.id as usize) else {
            rt_abort!("more than {MACHINES_MAX} machines were made")
        };
        // ORDERING: Release pairs with `machine`.
        slot.store((machine as *const Machine).cast_mut(), Release);
    }

    /// The machine with this number.
    pub(crate) fn machine(&self, id: u32) -> Option<&'static Machine> {
        // ORDERING: Acquire pairs with `register`.
        let m = self.machines.get(id as usize)?.load(Acquire);
        // SAFETY: machines are never freed.
        unsafe { m.as_ref() }
    }

    /// Whether some machine sleeps in the poller.
    pub(crate) fn is_polled(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.polling.load(Relaxed)
    }

    /// The poller, once the runtime has started.
    pub(crate) fn poller(&self) -> &Poller {
        match self.poller.get() {
            Some(poller) => poller,
            None => rt_abort!("the poller is used before the start"),
        }
    }

    pub(crate) fn set_poller(&self, poller: Poller) {
        let _ = self.poller.set(poller);
    }

    // ----------------------------------------------------------------- descriptors

    /// Takes `count` goroutine numbers.
    pub(crate) fn take_ids(&self, count: u64) -> GoroutineId {
        // ORDERING: Relaxed; only uniqueness matters.
        self.next_id.fetch_add(count, Relaxed)
    }

    /// Dead descriptors for a processor.
    pub(crate) fn take_free(&self) -> Batch<GRef> {
        let batch = self.free.lock().take();
        if !batch.is_empty() {
            return batch;
        }
        let Some(mut page) = slab::bare::take_page() else { return batch };
        let (batch, rest) = (page.take(PORTION), page.len());
        self.free.lock().give(page.take(rest));
        batch
    }

    /// All dead descriptors that are in no processor's hands, but for `keep`.
    pub(crate) fn take_free_beyond(&self, keep: usize) -> Batch<GRef> {
        self.free.lock().take_beyond(keep)
    }

    /// Dead descriptors from a processor. Those that plain threads took come back to them.
    pub(crate) fn give_free(&self, mut batch: Batch<GRef>) {
        // ORDERING: Relaxed; a statistic that steers.
        while self.outside_debt.load(Relaxed) > 0 {
            let Some(g) = batch.next() else { return };
            if !self.give_free_outside(g) {
                self.free.lock().give_one(g);
                break;
            }
        }
        self.free.lock().give(batch);
    }

    fn give_free_outside(&self, g: GRef) -> bool {
        for slot in &self.outside_free {
            let word = g.into_ptr().as_ptr();
            // ORDERING: Release pairs with `take_free_from_outside`.
            if slot.compare_exchange(ptr::null_mut(), word, Release, Relaxed).is_ok() {
                // ORDERING: Relaxed; a statistic that steers.
                self.outside_debt.fetch_sub(1, Relaxed);
                return true;
            }
        }
        false
    }

    /// A dead descriptor for a plain thread. Lock-free.
    pub(crate) fn take_free_from_outside(&self) -> GRef {
        // ORDERING: Relaxed; a statistic that steers.
        self.outside_debt.fetch_add(1, Relaxed);
        for slot in &self.outside_free {
            // ORDERING: Relaxed look; AcqRel pairs with `give_free_outside`.
            if slot.load(Relaxed).is_null() {
                continue;
            }
            if let Some(g) = NonNull::new(slot.swap(ptr::null_mut(), AcqRel)) {
                // SAFETY: only `give_free_outside` stores here, tokens of descriptors.
                return unsafe { GRef::from_ptr(g) };
            }
        }
        slab::fresh()
    }

    pub(crate) fn created_outside(&self) -> u64 {
        // ORDERING: Relaxed; a statistic.
        self.created_outside.load(Relaxed)
    }

    pub(crate) fn count_created_outside(&self) {
        // ORDERING: Relaxed; a statistic.
        self.created_outside.fetch_add(1, Relaxed);
    }
}

impl Synced {
    fn take_sleeping_of(&mut self, node: u16) -> Option<&'static Machine> {
        let mut next = self.sleeping;
        for _ in 0..SLEEPERS_SEEN {
            // SAFETY: machines are never freed.
            let Some(machine) = (unsafe { next.as_ref() }) else { break };
            if machine.node.get() == node {
                self.unlink_sleeping(machine);
                return Some(machine);
            }
            next = machine.next_idle.get();
        }
        self.take_sleeping()
    }

    fn take_sleeping(&mut self) -> Option<&'static Machine> {
        // SAFETY: machines are never freed.
        let m = unsafe { self.sleeping.as_ref() }?;
        self.unlink_sleeping(m);
        Some(m)
    }

    fn push_sleeping(&mut self, m: &'static Machine) {
        m.previous_idle.set(ptr::null());
        m.next_idle.set(self.sleeping);
        // SAFETY: machines are never freed.
        if let Some(next) = unsafe { self.sleeping.as_ref() } {
            next.previous_idle.set(m);
        }
        self.sleeping = m;
        self.sleeping_count += 1;
        m.is_among_sleeping.set(true);
    }

    fn unlink_sleeping(&mut self, m: &'static Machine) {
        let (previous, next) = (m.previous_idle.get(), m.next_idle.get());
        // SAFETY: machines are never freed.
        match unsafe { previous.as_ref() } {
            Some(previous) => previous.next_idle.set(next),
            None => self.sleeping = next,
        }
        // SAFETY: as above.
        if let Some(next) = unsafe { next.as_ref() } {
            next.previous_idle.set(previous);
        }
        self.sleeping_count -= 1;
        m.is_among_sleeping.set(false);
    }
}

/// GOMAXPROCS: how many goroutines run at once. 0 before the runtime has started.
#[must_use]
pub fn procs() -> usize {
    SCHEDULER.procs() as usize
}

/// How many goroutines there are. Go's `runtime.NumGoroutine`.
#[must_use]
pub fn num_goroutine() -> usize {
    let counts = crate::counters();
    (counts.created + counts.created_outside).saturating_sub(counts.ended) as usize
}

/// How many CPUs this process may run on. Go's `runtime.NumCPU`; as at the first call.
#[must_use]
pub fn num_cpu() -> usize {
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| gosched_topology::count_allowed_cpus().unwrap_or(1))
}
