//! The helper thread: serves requests, fills the reserve, gives back what nobody uses.

use super::serve::{Served, serve_all};
use super::stock::Stock;
use super::{BELL, DISCARDED, IDLE, Make, RESERVE, give, idle_max, is_waiting, refusal};
use crate::fiber::{Makings, Remains};
use crate::stack::{self, Class};
use crate::tls::{self, Kind};
use crate::{signals, thread};
use gosched_base::{Stride, os, prefetch};
use std::collections::VecDeque;
use std::time::Duration;

/// How long fibers must have been idle before they are given back.
const IDLE_FOR: Duration = Duration::from_millis(100);
/// Fibers destroyed between two looks for requests.
const BATCH: usize = 4096;
/// Fibers destroyed between two looks whether all are busy: some hundred microseconds' work.
const STEP: usize = 128;
/// If they are, one part in so many of the time goes into it.
const BUSY_SHARE: u64 = 8;
/// Of a class of which nothing is to be destroyed.
const NONE_LEAVES: usize = usize::MAX;
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
    thread::set_name(c"gosched-fibers");
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
    make: Make,
    /// Destroyed fibers, each batch with the time from which its slots may be released.
    leaving: VecDeque<(u64, Vec<Remains>)>,
    /// How soon to look again while requests can't be served.
    retry: Duration,
    /// When busy requesters are served next.
    next_paced: u64,
    /// How many idle fibers of each class stay; those beyond are to be destroyed.
    stay: [usize; Class::COUNT],
    /// When some are destroyed although all are busy.
    next_destroyed: u64,
}

impl Helper {
    pub(super) fn new(make: Make) -> Helper {
        Helper {
            make,
            leaving: VecDeque::new(),
            retry: RETRY.0,
            next_paced: 0,
            stay: [NONE_LEAVES; Class::COUNT],
            next_destroyed: 0,
        }
    }

    /// Does what there is to do; returns when to look again without a bell.
    pub(super) fn round(&mut self) -> Option<Duration> {
        let served = self.serve_requests();
        self.top_up();
        self.reclaim_discarded();
        let above = self.note_surplus();
        self.collect_if_asked();
        let surplus = self.destroy_surplus();
        let grace = self.release_ripe();
        let paced = (served == Served::InPart).then_some(PACE);
        [self.next_retry(served), paced, above, surplus, grace].into_iter().flatten().min()
    }

    /// Serves what it can and should; what is left it serves later (I4 of `pool`).
    pub(super) fn serve_requests(&mut self) -> Served {
        let now = os::monotonic_ns();
        let is_time = now >= self.next_paced;
        let served = serve_all(self.make, is_time);
        if is_time {
            self.next_paced = now + PACE.as_nanos() as u64;
        }
        served
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
        loop {
            let are_idle = IDLE[Class::DEFAULT.index()].lock().count();
            let missing = RESERVE.saturating_sub(are_idle);
            if missing == 0 {
                return;
            }
            let mut makings = Makings::new(Class::DEFAULT, missing);
            for _ in 0..missing {
                let Some(fiber) = (self.make)(&mut makings) else { return };
                // SAFETY: it is new.
                unsafe { give(fiber) };
            }
        }
    }

    /// Discarded fibers are destroyed, or where libc does not let go of them, cleaned.
    pub(super) fn reclaim_discarded(&mut self) {
        let mut discarded = DISCARDED.lock().take_all();
        if tls::kind() != Kind::DeadThread {
            return self.destroy(discarded);
        }
        while let Some(fiber) = discarded.pop() {
            // SAFETY: ours alone; it was finished before it was discarded.
            unsafe { fiber.scrub() };
            // SAFETY: scrubbed is as good as reusable.
            unsafe { give(fiber) };
        }
    }

    /// What was idle above the bound ever since the last look is to be destroyed; returns when to look
    /// next.
    fn note_surplus(&mut self) -> Option<Duration> {
        if tls::kind() == Kind::DeadThread {
            return None;
        }
        let mut above = false;
        for class in Class::all() {
            let mut idle = IDLE[class.index()].lock();
            // What is to be destroyed is watched until it is gone.
            let surplus = match self.stay[class.index()] {
                NONE_LEAVES => idle.take_low().saturating_sub(idle_max()),
                _ => 0,
            };
            let count = idle.count();
            drop(idle);
            if surplus > 0 {
                self.let_stay(class, count - surplus);
            }
            above |= count > idle_max();
        }
        above.then_some(IDLE_FOR)
    }

    /// Idle fibers beyond `count` are to be destroyed.
    pub(super) fn let_stay(&mut self, class: Class, count: usize) {
        let stay = &mut self.stay[class.index()];
        *stay = count.min(*stay);
    }

    /// Destroys some of what is to be destroyed and has been idle since; returns when to go on. While
    /// all are busy that is later: they would have to share their CPUs and the kernel's locks with it.
    fn destroy_surplus(&mut self) -> Option<Duration> {
        if !self.is_any_to_leave() {
            return None;
        }
        let begin = os::monotonic_ns();
        if begin < self.next_destroyed && !is_waiting() {
            return Some(Duration::from_nanos(self.next_destroyed - begin));
        }
        let mut at_most = STEP;
        for class in Class::all() {
            let stay = self.stay[class.index()];
            let surplus = IDLE[class.index()].lock().low().saturating_sub(stay);
            let count = surplus.min(at_most);
            self.destroy_idle(class, count);
            at_most -= count;
            if count == surplus {
                self.stay[class.index()] = NONE_LEAVES;
            }
        }
        let end = os::monotonic_ns();
        let pause = if is_waiting() { 0 } else { (end - begin) * (BUSY_SHARE - 1) };
        self.next_destroyed = end + pause;
        self.is_any_to_leave().then_some(Duration::from_nanos(pause))
    }

    fn is_any_to_leave(&self) -> bool {
        self.stay.iter().any(|stay| *stay != NONE_LEAVES)
    }

    /// Destroys `surplus` idle fibers, and gives memory back and serves requests on the way.
    pub(super) fn destroy_idle(&mut self, class: Class, mut surplus: usize) {
        for batches in 1.. {
            let batch = cut_off(class, surplus.min(BATCH));
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
        let mut ahead = Stride::new();
        while let Some(fiber) = fibers.pop() {
            // Each of them may be a cache miss or two.
            if let Some(stride) = ahead.passes(fiber.address()) {
                prefetch(fiber.address().wrapping_add(stride));
            }
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

/// The `count` newest idle fibers, or all there are.
fn cut_off(class: Class, count: usize) -> Stock {
    let mut taken = Stock::new();
    while taken.count() < count {
        let some = IDLE[class.index()].lock().take_surplus(count - taken.count());
        if some.count() == 0 {
            break;
        }
        taken.add(some);
    }
    taken
}

fn release(remains: Vec<Remains>) {
    for one in remains {
        // SAFETY: `destroy` has waited for the walkers, or a second has passed.
        unsafe { one.release() };
    }
}
