//! The helper thread: serves requests, fills the reserve, gives back what nobody uses.

use super::serve::{Served, serve};
use super::stock::Stock;
use super::{BELL, DISCARDED, IDLE, IS_PACED, RESERVE, give, idle_max, refusal};
use crate::fiber::{Fiber, Remains};
use crate::signals;
use crate::stack::{self, Class};
use crate::tls::{self, Kind};
use gosched_base::os;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long fibers must have been idle before they are given back.
const IDLE_FOR: Duration = Duration::from_millis(100);
/// Fibers destroyed between two looks for requests.
const BATCH: usize = 4096;
/// Batches destroyed between two times that their pages are given back: neighbours are then given
/// back in one call, and a million of them still leave step by step.
const BATCHES_A_TRIM: usize = 16;
/// For walks through libc's list of threads, where they can't be waited for (I3 of `pool`).
const GRACE_NS: u64 = 1_000_000_000;
/// How often some requests are served although the requesters are busy.
const PACE: Duration = Duration::from_millis(1);
/// How soon a request that could not be served is tried again, and how late.
const RETRY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(500));

/// The helper thread's main function.
pub(super) fn help() {
    signals::block_for_good();
    let mut helper = Helper::new(refusal::make);
    loop {
        match helper.round() {
            None => BELL.sleep(),
            Some(timeout) => drop(BELL.sleep_for(timeout)),
        }
    }
}

/// What the helper remembers between two rounds.
pub(super) struct Helper {
    make: fn(Class) -> Option<Fiber>,
    /// Destroyed fibers, each batch with the time from which its slots may be released.
    leaving: VecDeque<(u64, Vec<Remains>)>,
    /// How soon to look again while requests can't be served.
    retry: Duration,
    /// When busy requesters are served next.
    next_paced: u64,
}

impl Helper {
    pub(super) fn new(make: fn(Class) -> Option<Fiber>) -> Helper {
        Helper { make, leaving: VecDeque::new(), retry: RETRY.0, next_paced: 0 }
    }

    /// Does what there is to do; returns when to look again without a bell.
    pub(super) fn round(&mut self) -> Option<Duration> {
        let served = self.serve_requests();
        self.top_up();
        self.reclaim_discarded();
        let surplus = self.destroy_surplus();
        self.collect_if_asked();
        let grace = self.release_ripe();
        let paced = (served == Served::InPart).then_some(PACE);
        [self.next_retry(served), paced, surplus, grace].into_iter().flatten().min()
    }

    /// Serves what it can and should; what is left it serves later (I4 of `pool`).
    fn serve_requests(&mut self) -> Served {
        // ORDERING: Relaxed; see `request`.
        IS_PACED.store(false, Relaxed);
        let now = os::monotonic_ns();
        let is_time = now >= self.next_paced;
        let served = Class::all().map(|class| serve(class, self.make, is_time)).max();
        if is_time {
            self.next_paced = now + PACE.as_nanos() as u64;
        }
        // ORDERING: Relaxed; as above.
        IS_PACED.store(served == Some(Served::InPart), Relaxed);
        served.unwrap_or(Served::All)
    }

    fn next_retry(&mut self, served: Served) -> Option<Duration> {
        if served != Served::NoMemory {
            self.retry = RETRY.0;
            return None;
        }
        let now = self.retry;
        self.retry = (now * 2).min(RETRY.1);
        if now == RETRY.1 {
            refusal::warn_once();
        }
        Some(now)
    }

    /// Fills the reserve. Without memory it stays as it is until the next bell.
    fn top_up(&mut self) {
        if !tls::kind().has_blocks() {
            return;
        }
        while IDLE[Class::DEFAULT.index()].lock().count() < RESERVE {
            let Some(fiber) = (self.make)(Class::DEFAULT) else { return };
            // SAFETY: it is new.
            unsafe { give(fiber) };
        }
    }

    /// Discarded fibers are destroyed, or where libc does not let go of them, cleaned.
    pub(super) fn reclaim_discarded(&mut self) {
        let mut discarded = DISCARDED.lock().pop_many(usize::MAX);
        if tls::kind() != Kind::DeadThread {
            return self.destroy(discarded);
        }
        while let Some(fiber) = discarded.pop() {
            // SAFETY: ours alone; it was finished before it was discarded.
            unsafe { fiber.scrub() };
            // SAFETY: scrubbed is as good as renewed.
            unsafe { give(fiber) };
        }
    }

    /// Destroys what was idle above the bound ever since the last look; returns when to look next.
    fn destroy_surplus(&mut self) -> Option<Duration> {
        if tls::kind() == Kind::DeadThread {
            return None;
        }
        let mut above = false;
        for class in Class::all() {
            let idle = &IDLE[class.index()];
            let surplus = idle.lock().take_low().saturating_sub(idle_max());
            self.destroy_idle(class, surplus);
            above |= idle.lock().count() > idle_max();
        }
        above.then_some(IDLE_FOR)
    }

    /// Destroys `surplus` idle fibers, and gives memory back and serves requests on the way.
    pub(super) fn destroy_idle(&mut self, class: Class, mut surplus: usize) {
        for batches in 1.. {
            let batch = IDLE[class.index()].lock().pop_many(surplus.min(BATCH));
            if batch.count() == 0 {
                return;
            }
            surplus -= batch.count();
            self.destroy(batch);
            self.serve_requests();
            if surplus == 0 || batches % BATCHES_A_TRIM == 0 {
                stack::trim(class, idle_max());
            }
        }
    }

    /// Destroys fibers and releases their slots, at once if possible (I3 of `pool`).
    fn destroy(&mut self, mut fibers: Stock) {
        let mut remains = Vec::with_capacity(fibers.count());
        super::collect::count_given_back(fibers.count());
        while let Some(fiber) = fibers.pop() {
            // SAFETY: ours alone; idle and discarded fibers are finished.
            remains.extend(unsafe { fiber.destroy() });
        }
        if remains.is_empty() {
        } else if tls::wait_for_walkers() {
            release(remains);
        } else {
            self.leaving.push_back((os::monotonic_ns() + GRACE_NS, remains));
        }
    }

    /// Releases the slots whose time has come; returns when the next ones' does.
    fn release_ripe(&mut self) -> Option<Duration> {
        let now = os::monotonic_ns();
        while self.leaving.front().is_some_and(|(ripe, _)| *ripe <= now) {
            let Some((_, remains)) = self.leaving.pop_front() else { break };
            release(remains);
        }
        self.leaving.front().map(|(ripe, _)| Duration::from_nanos(ripe - now))
    }
}

fn release(remains: Vec<Remains>) {
    for one in remains {
        // SAFETY: `destroy` has waited for the walkers, or a second has passed.
        unsafe { one.release() };
    }
}
