//! Which processors are near each other.
//!
//! A processor stands for a CPU, the first for the first of `gosched_topology`'s list, in which
//! neighbours stand together, and so has a node and a group that shares an L3 cache. Whoever looks
//! for work looks at near processors first, whoever has work wakes a near one first, and a goroutine
//! can ask to begin on a node. Where all CPUs share one cache, or nobody cares, there are no
//! [`Levels`], and nothing is different from a scheduler that knows of none.
//!
//! The kernel runs threads where it likes unless `numa=pin` ties each to the node of the processor
//! that it holds. Even so what goroutines of one node share stays near: threads that wake each other
//! are kept together by the kernel as well.
//!
//! Invariants
//! * I1. Levels are made before the first processor, and never change.
//! * I2. What lies in a node's queue is in sight of every machine that is about to sleep, and
//!   processors of other nodes take it once no processor of its own is idle.
//! * I3. A queue of a node without processors in service (GOMAXPROCS is less than there are CPUs) has
//!   its turn on every processor, as the global queue.
//!
//! Rejected: leaving far work to its node for longer than a thief's patience (`steal`), since a
//! goroutine that waits beside an idle processor is what work stealing is to prevent.

#[cfg(test)]
mod tests;

use crate::config::Numa;
use crate::goroutine::GRef;
use crate::machine::{Inside, Machine};
use crate::processor::Processor;
use gosched_base::{CachePadded, os};
use gosched_runq::{Batch, Injector};
use gosched_topology::Topology;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Nodes beyond this number count as the last one.
const NODES_MAX: usize = 64;
/// One cache, one node.
pub(crate) const LEVELS_OF_A_NODE: u32 = 2;
/// In so many rounds of four a thief stays on its node.
pub(crate) const ROUNDS_AT_HOME: u32 = 2;

/// Where a processor is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) node: u16,
    cache: u16,
}

/// How near places are, where there are several.
#[derive(Debug)]
pub(crate) struct Levels {
    /// Of each CPU.
    places: Vec<Place>,
    nodes: usize,
    /// For each pair of nodes, which of the far levels that is.
    ranks: Vec<u32>,
    count: u32,
    numa: Numa,
    /// CPUs of each node.
    masks: Vec<Vec<u64>>,
}

static LEVELS: OnceLock<Levels> = OnceLock::new();

/// Goroutines that are to begin on a node. Pushed by: anyone. Taken by: machines, see I2.
static QUEUES: [CachePadded<Injector<GRef>>; NODES_MAX] =
    [const { CachePadded::new(Injector::new()) }; NODES_MAX];
/// Nodes that have a processor in service, one bit each. Written while the world is stopped.
static SERVED: AtomicU64 = AtomicU64::new(0);
/// Idle processors of each node. Written under the scheduler's lock.
static IDLE: [AtomicU32; NODES_MAX] = [const { AtomicU32::new(0) }; NODES_MAX];

/// Reads the machine, before the first processor is made. Allocates.
pub(crate) fn start(topology: impl FnOnce() -> Topology, numa: Numa) {
    if numa != Numa::Off
        && let Some(levels) = Levels::of(&topology(), numa)
    {
        // Before any thread is tied to a node.
        let _ = crate::num_cpu();
        let _ = LEVELS.set(levels);
    }
}

/// How near processors are; `None` where all are alike.
#[inline]
pub(crate) fn levels() -> Option<&'static Levels> {
    LEVELS.get()
}

/// As [`levels`], if they are to be acted on.
#[inline]
fn followed() -> Option<&'static Levels> {
    levels().filter(|levels| levels.numa != Numa::Blind)
}

/// The place of processor `id`.
pub(crate) fn place(id: u32) -> Place {
    levels().map_or(Place::default(), |levels| levels.places[id as usize % levels.places.len()])
}

impl Levels {
    fn of(topology: &Topology, numa: Numa) -> Option<Levels> {
        let mut caches: Vec<u32> = topology.cpus().iter().map(|cpu| cpu.cache).collect();
        caches.dedup();
        let nodes = topology.nodes().len().min(NODES_MAX);
        if nodes == 1 && caches.len() == 1 {
            return None;
        }
        let place = |cpu: &gosched_topology::Cpu| Place {
            node: cpu.node.min(nodes - 1) as u16,
            cache: caches.iter().position(|cache| *cache == cpu.cache).unwrap_or(0) as u16,
        };
        let mut ranks = vec![0; nodes * nodes];
        for one in 0..nodes {
            let distance = |other: usize| topology.nodes()[one].distances.get(other).copied();
            let mut all: Vec<_> = (0..nodes).filter(|other| *other != one).map(distance).collect();
            all.sort_unstable();
            all.dedup();
            for other in (0..nodes).filter(|other| *other != one) {
                let rank = all.iter().position(|d| *d == distance(other));
                ranks[one * nodes + other] = rank.unwrap_or(0) as u32;
            }
        }
        let far = if nodes > 1 { ranks.iter().max().map_or(0, |most| most + 1) } else { 0 };
        Some(Levels {
            places: topology.cpus().iter().map(place).collect(),
            nodes,
            ranks,
            count: LEVELS_OF_A_NODE + far,
            numa,
            masks: topology.nodes().iter().map(|node| node.cpus.words().to_vec()).collect(),
        })
    }

    /// How near two places are: 0 is nearest.
    pub(crate) fn between(&self, one: Place, other: Place) -> u32 {
        match one.node == other.node {
            true => u32::from(one.cache != other.cache),
            false => self.between_nodes(one.node, other.node),
        }
    }

    fn between_nodes(&self, one: u16, other: u16) -> u32 {
        LEVELS_OF_A_NODE + self.ranks[usize::from(one) * self.nodes + usize::from(other)]
    }

    /// How many levels a thief looks at in a round, the nearest first.
    pub(crate) fn reach(&self, round: u32) -> u32 {
        if round <= ROUNDS_AT_HOME { LEVELS_OF_A_NODE } else { self.count }
    }
}

/// How thieves look at others: level by level, or at all of them alike.
#[inline]
pub(crate) fn for_thieves() -> Option<&'static Levels> {
    followed()
}

/// The NUMA node of the processor that runs the caller, counted from 0; `None` on a plain thread. A
/// moment later it may be another. 0 where no notice is taken of nodes.
#[must_use]
pub fn current_node() -> Option<usize> {
    let inside = Inside::enter()?;
    let node = inside.processor().place.node;
    inside.leave();
    Some(usize::from(node))
}

// ------------------------------------------------------------------------------- who is woken

/// Where a processor is wanted: near the waker, or on a node that has work of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    levels: &'static Levels,
    node: u16,
    cache: Option<u16>,
}

/// Where the processor to wake should be; `None` where all are alike. Inside the runtime, or on a
/// plain thread.
pub(crate) fn wanted() -> Option<Wanted> {
    let levels = followed()?;
    let by_queue = (0..levels.nodes).find(|node| !QUEUES[*node].is_empty());
    if let Some(node) = by_queue {
        return Some(Wanted { levels, node: node as u16, cache: None });
    }
    let place = Machine::current_here()?.processor()?.place;
    Some(Wanted { levels, node: place.node, cache: Some(place.cache) })
}

impl Wanted {
    /// How far `p` is from there.
    pub(crate) fn distance_to(self, p: &Processor) -> u32 {
        let Place { node, cache } = p.place;
        if node == self.node {
            return u32::from(self.cache.is_some_and(|wanted| wanted != cache));
        }
        self.levels.between_nodes(self.node, node)
    }
}

/// As [`wanted`], for what lies on `node`.
pub(crate) fn wanted_on(node: u16) -> Option<Wanted> {
    Some(Wanted { levels: followed()?, node, cache: None })
}

/// Whether `node` has idle processors; a hint, and false where no notice is taken of nodes.
pub(crate) fn has_idle(node: u16) -> bool {
    // ORDERING: Relaxed; as in `count_idle`.
    followed().is_some() && IDLE[usize::from(node)].load(Relaxed) > 0
}

/// Counts a processor that has become idle. Under the scheduler's lock.
pub(crate) fn count_idle(p: &Processor) {
    if levels().is_some() {
        // ORDERING: Relaxed; a hint, see `take_far`.
        IDLE[usize::from(p.place.node)].fetch_add(1, Relaxed);
    }
}

/// Counts one that is idle no more. Under the scheduler's lock.
pub(crate) fn count_busy(p: &Processor) {
    if levels().is_some() {
        // ORDERING: Relaxed; as in `count_idle`.
        IDLE[usize::from(p.place.node)].fetch_sub(1, Relaxed);
    }
}

// ------------------------------------------------------------------------------ where one begins

/// The node in whose queue a goroutine belongs that asked for node `id`, by the kernel's order;
/// `None` where all are alike or there is no such node.
pub(crate) fn home(id: usize) -> Option<u16> {
    followed().filter(|levels| id < levels.nodes).map(|_| id as u16)
}

/// Puts a new goroutine in a node's queue. The caller wakes somebody.
pub(crate) fn push(node: u16, g: GRef) {
    QUEUES[usize::from(node)].push(g);
}

/// Whether some node's queue has work (I2).
#[inline]
pub(crate) fn is_work_in_sight() -> bool {
    followed().is_some_and(|levels| QUEUES[..levels.nodes].iter().any(|queue| !queue.is_empty()))
}

/// What is to begin on the node of `p`.
#[inline]
pub(crate) fn take_own(p: &Processor) -> Option<Batch<GRef>> {
    followed()?;
    let queue = &QUEUES[usize::from(p.place.node)];
    if queue.is_empty() { None } else { Some(queue.take_all()) }
}

/// Processors below `procs` are in service now. Nobody runs.
pub(crate) fn note_served(procs: u32) {
    if levels().is_some() {
        let served = (0..procs).fold(0, |nodes, id| nodes | 1_u64 << place(id).node);
        // ORDERING: Relaxed; a hint, see `take_unserved`.
        SERVED.store(served, Relaxed);
    }
}

/// What is to begin on nodes that have no processor (I3).
pub(crate) fn take_unserved() -> Option<Batch<GRef>> {
    let levels = followed()?;
    // ORDERING: Relaxed; who sees an old number looks again in its next fairness round.
    let served = SERVED.load(Relaxed);
    (0..levels.nodes)
        .find(|node| served >> node & 1 == 0 && !QUEUES[*node].is_empty())
        .map(|node| QUEUES[node].take_all())
}

/// What is to begin on other nodes that have no idle processor (I2). If there is one it is for that
/// one: the caller's machine, which finds nothing, looks again before it sleeps, and takes it.
pub(crate) fn take_far() -> Option<Batch<GRef>> {
    let levels = followed()?;
    (0..levels.nodes)
        // ORDERING: Relaxed; who is about to sleep looks again.
        .find(|node| !QUEUES[*node].is_empty() && IDLE[*node].load(Relaxed) == 0)
        .map(|node| QUEUES[node].take_all())
}

// ------------------------------------------------------------------------------------- pinning

/// Whether machines are tied to nodes.
pub(crate) fn pins() -> bool {
    levels().is_some_and(|levels| levels.numa == Numa::Pin)
}

/// The machine has taken `p`: with `numa=pin` its thread goes to that node. One that belongs to a
/// goroutine is left alone.
#[inline]
pub(crate) fn follow(machine: &Machine, p: &Processor) {
    if let Some(levels) = levels()
        && levels.numa == Numa::Pin
    {
        pin(levels, machine, p.place.node);
    }
}

#[cold]
fn pin(levels: &Levels, machine: &Machine, node: u16) {
    if machine.locked.get().is_some() || machine.pinned_to.replace(Some(node)) == Some(node) {
        return;
    }
    if let Some(mask) = levels.masks.get(usize::from(node)) {
        // Fails in a made-up machine.
        let _ = os::set_affinity(mask);
    }
}
