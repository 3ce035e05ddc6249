//! Timers: a heap per processor.
//!
//! Two kinds stand in it. A goroutine that waits until a time has a record on its stack
//! ([`deadline`]). An alarm lies in memory of its own and starts a goroutine ([`alarm`]). Whoever
//! holds the heap's lock may fire what is due; the goroutines are made runnable once the lock is free.
//!
//! Invariants
//! * I1. What stands in the heap stays where it is until it fires or is removed, both under the
//!   lock. A waiter leaves its frame, and an alarm is freed, only after one of them.
//! * I2. `next` is the earliest time in the heap, or `u64::MAX`. Written under the lock.

mod alarm;
mod deadline;
mod heap;

pub use alarm::{AfterFunc, after_func};
pub(crate) use deadline::{after, wait_with_deadline};
pub use deadline::{sleep, sleep_ctx, sleep_until};

use crate::goroutine::GRef;
use crate::plant::Wake;
use crate::processor::Processor;
use crate::switch::FAIRNESS_ROUNDS;
use crate::{idle, jumps, monitor, park};
use alarm::Starts;
use deadline::Record;
use gosched_base::{Lock, os};
use gosched_runq::List;
use heap::{Heap, Hook, Kind};
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// So many goroutines become runnable at a time; the others stay in the heap until the next look,
/// which comes after as many rounds. All at once they would overflow the ring, and those beyond it
/// would wait behind everybody in the global queue, although they are late already.
pub(crate) const AT_ONCE: usize = FAIRNESS_ROUNDS as usize;

/// One processor's timers.
pub(crate) struct Timers {
    next: AtomicU64,
    /// How many there are. Written by: holders of the heap's lock. Read by: anyone.
    count: AtomicUsize,
    heap: Lock<Heap>,
}

impl Timers {
    pub(crate) const fn new() -> Timers {
        Timers {
            next: AtomicU64::new(u64::MAX),
            count: AtomicUsize::new(0),
            heap: Lock::new(Heap::new()),
        }
    }

    /// How many there are; a hint. For reports: whoever reads it may be stopped, and takes no lock.
    pub(crate) fn len(&self) -> usize {
        // ORDERING: Relaxed; a statistic.
        self.count.load(Relaxed)
    }

    /// The earliest deadline; a hint.
    #[inline]
    pub(crate) fn next_deadline(&self) -> u64 {
        // ORDERING: Relaxed; whoever must not miss a timer has a fence of its own.
        self.next.load(Relaxed)
    }

    /// Fires what is due; the goroutines go to the ring of `p`, which the caller holds and takes one
    /// from. Whether there were any.
    #[inline]
    pub(crate) fn run_due(&self, p: &'static Processor) -> bool {
        let next = self.next_deadline();
        next != u64::MAX && self.run_due_at(p, next)
    }

    fn run_due_at(&self, p: &'static Processor, next: u64) -> bool {
        let now = os::monotonic_ns();
        if next > now {
            return false;
        }
        // Those of the last look are still there: this one came early.
        let max = AT_ONCE.saturating_sub(jumps::ahead(p));
        // If others were passed too often they go first: what is due stays until the next look.
        if max == 0 || !jumps::may_jump(p) {
            return false;
        }
        let mut due = self.take_due(now, max, Some(p));
        let runnable = due.len() + p.ring.len();
        // To the ring's head, the earliest first: they have waited long enough.
        let mut latest_first = List::new();
        while let Some(g) = due.pop_front() {
            latest_first.push_front(g);
        }
        jumps::make_room(p, latest_first.len());
        while let Some(g) = latest_first.pop_front() {
            p.counters.timers.add();
            park::push_front(p, g);
        }
        monitor::note_timers_run();
        // This machine takes one of them; the others are for whoever is idle.
        if runnable > 1 {
            idle::wake_one_for(Wake::Timers);
        }
        runnable > 0
    }

    /// The goroutines of up to `max` timers that are due, runnable: those who still waited, then
    /// those that alarms start. `p` is the caller's processor, if it holds one.
    pub(crate) fn take_due(
        &self,
        now: u64,
        max: usize,
        p: Option<&'static Processor>,
    ) -> List<GRef> {
        let (mut due, mut starts) = (List::new(), Starts::new());
        let mut heap = self.heap.lock();
        let mut left = max;
        while left > 0 {
            left -= take_sleepers(&mut heap, now, left, &mut due);
            let Some(first) = heap.first().filter(|first| first.when <= now && left > 0) else {
                break;
            };
            if first.stays() {
                continue;
            }
            left -= 1;
            let hook = first.hook();
            // SAFETY: in the heap, so it is there (I1).
            match unsafe { &*hook }.kind {
                Kind::Waiter => {
                    heap.pop();
                    // SAFETY: it was in the heap until now, and lies in a record.
                    if let Some(g) = unsafe { Record::fire(hook) } {
                        due.push_back(g);
                    }
                }
                // SAFETY: the first of this heap, whose lock is held, and lies in an alarm.
                Kind::Alarm => unsafe { starts.fire(hook, now, &mut heap) },
            }
        }
        self.publish_next(&heap);
        drop(heap);
        starts.make_goroutines(p, &mut due);
        due
    }

    fn publish_next(&self, heap: &Heap) {
        // ORDERING: Relaxed; see `next_deadline`.
        self.next.store(heap.first().map_or(u64::MAX, |e| e.when), Relaxed);
        self.publish_len(heap);
    }

    #[inline]
    fn publish_len(&self, heap: &Heap) {
        // ORDERING: Relaxed; see `len`.
        self.count.store(heap.len(), Relaxed);
    }
}

/// Takes up to `max` sleepers that are due off the heap's top, as long as nothing else stands there;
/// how many. Among many each one's record is cold, and its descriptor, whose place the record says: so
/// all of them are asked for before the first is used.
fn take_sleepers(heap: &mut Heap, now: u64, max: usize, due: &mut List<GRef>) -> usize {
    let mut hooks = [ptr::null::<Hook>(); AT_ONCE];
    let mut count = 0;
    while count < max.min(AT_ONCE)
        && let Some(first) = heap.first().filter(|first| first.when <= now && first.stays())
    {
        hooks[count] = first.hook();
        gosched_base::prefetch(first.hook().addr());
        heap.pop();
        count += 1;
    }
    if count > 1 {
        for hook in &hooks[..count] {
            // SAFETY: it was in the heap, and lies in a record, whose waiter waits until it is fired.
            unsafe { Record::goroutine(*hook) }.prefetch_descriptor();
        }
    }
    for hook in &hooks[..count] {
        // SAFETY: it was in the heap, and lies in a record; fired once.
        if let Some(g) = unsafe { Record::fire(*hook) } {
            due.push_back(g);
        }
    }
    count
}
