//! A mutex: one word, and a queue for those who wait.
//!
//! As Go's. Normally a lock that becomes free is anybody's: the first waiter is woken and competes
//! with those who come along, which is what throughput wants, since those run already. A waiter
//! that is woken and loses goes back to the queue's front. Once the first waiter has waited for
//! 1 ms, it is given the lock by whoever lets go of it; and while one of those who were that late is
//! in the queue, nobody overtakes.
//!
//! Word: LOCKED, WOKEN (a woken or spinning waiter is on its way, so nobody else is woken),
//! WAITING (the queue is not empty), STARVING (a free lock is the first waiter's), SPINNING (beside
//! WOKEN: it was set by one that spins).
//!
//! Invariants
//! * I1. WAITING and STARVING change under the queue's lock only. STARVING implies WAITING.
//! * I2. Whoever sets LOCKED, or is given the lock, clears it once. Without LOCKED and with
//!   STARVING nobody sets it but [`settle`](RawMutex::settle), for the first waiter.
//! * I3. WOKEN is cleared, and SPINNING with it, by one who was woken or has set it itself: when it takes the lock, or
//!   when it queues (with LOCKED or STARVING seen set, so that an unlock is to come).
//! * I4. After each unlock that leaves WAITING without WOKEN, or with STARVING, somebody settles.
//!
//! Rejected: a lock that always goes to the first waiter, which makes every operation a switch as
//! soon as there is one; waking without WOKEN, which makes every unlock a wake.

use super::{STARVING_NS, Spin};
use crate::node::{Node, Outcome, Patience, Waited, Wish};
use crate::profile;
use crate::queue::{Queue, Waiters, Wakes};
use crate::rt::{
    AtomicU32, Critical, WaitReason, const_unless_modelled, give_way, give_way_if_alone, is_busy,
    now_ns,
};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const LOCKED: u32 = 1 << 0;
const WOKEN: u32 = 1 << 1;
const WAITING: u32 = 1 << 2;
const STARVING: u32 = 1 << 3;
const SPINNING: u32 = 1 << 4;

/// Whether anybody may take a lock with this word.
fn is_open(word: u32) -> bool {
    word & (LOCKED | STARVING) == 0
}

/// Whether the one who made a lock free, leaving this word, has to settle.
#[inline(always)]
fn is_unsettled(word: u32) -> bool {
    word & WAITING != 0 && word & (WOKEN | STARVING) != WOKEN
}

/// Whether a lock with this word is free for one who was woken, and may wait for a processor.
#[inline(always)]
fn is_for_woken(word: u32) -> bool {
    word & (WOKEN | SPINNING) == WOKEN
}

/// A mutex without data.
pub(crate) struct RawMutex {
    word: AtomicU32,
    waiters: Waiters,
}

/// One that wants the lock and did not get it at once.
struct Contender {
    /// WOKEN is this one's to clear.
    is_woken: bool,
    /// It has waited before: it goes to the front.
    has_waited: bool,
    is_starving: bool,
    spin: Spin,
}

impl RawMutex {
    const_unless_modelled! {
        pub(crate) fn new() -> RawMutex {
            RawMutex { word: AtomicU32::new(0), waiters: Waiters::new() }
        }
    }

    #[inline]
    pub(crate) fn lock(&self) {
        if !self.lock_at_once() {
            self.lock_contended(Patience::Endless);
        }
    }

    /// False: the wait ended first.
    #[inline]
    pub(crate) fn lock_with(&self, patience: Patience<'_>) -> bool {
        self.lock_at_once() || self.lock_contended(patience)
    }

    /// Takes the lock if it is free, though others may wait. It may fail for no reason.
    #[inline(always)]
    fn lock_at_once(&self) -> bool {
        // ORDERING: Acquire pairs with `unlock`; makes what was written under the lock visible.
        match self.word.compare_exchange(0, LOCKED, Acquire, Relaxed) {
            Ok(_) => true,
            Err(word) => {
                is_open(word)
                    // ORDERING: as above.
                    && self.word.compare_exchange(word, word | LOCKED, Acquire, Relaxed).is_ok()
            }
        }
    }

    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        // ORDERING: as in `lock_at_once`.
        let mut word = match self.word.compare_exchange(0, LOCKED, Acquire, Relaxed) {
            Ok(_) => return true,
            Err(word) => word,
        };
        while is_open(word) {
            // ORDERING: as in `lock_at_once`.
            match self.word.compare_exchange(word, word | LOCKED, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    #[inline]
    pub(crate) fn unlock(&self) {
        // ORDERING: Release pairs with `lock_at_once` and its kin.
        let word = self.word.fetch_sub(LOCKED, Release) - LOCKED;
        if word != 0 && (is_unsettled(word) || is_for_woken(word)) {
            self.unlock_beside_others(word);
        }
    }

    #[cold]
    fn unlock_beside_others(&self, word: u32) {
        if is_unsettled(word) {
            self.unlock_contended();
        } else {
            // Whoever has passed the one that was woken, in a round of fairness for instance, could
            // take the lock again and again until its slice is over.
            give_way_if_alone();
        }
    }

    #[cold]
    fn lock_contended(&self, patience: Patience<'_>) -> bool {
        let mut me = Contender {
            is_woken: false,
            has_waited: false,
            is_starving: false,
            spin: Spin::for_one(),
        };
        while self.is_worth_spinning(&mut me) {}
        let node = Node::new(Wish::Whole, now_ns());
        loop {
            if self.take_or_queue(&node, &me) {
                return true;
            }
            match self.waiters.wait(&node, WaitReason::MutexLock, patience) {
                Waited::Claimed(Outcome::Granted) => return true,
                Waited::Claimed(Outcome::Woken) => {}
                Waited::Ended => {
                    self.forget_flags();
                    return false;
                }
            }
            node.renew();
            me = Contender {
                is_woken: true,
                has_waited: true,
                is_starving: now_ns().saturating_sub(node.since) > STARVING_NS,
                spin: Spin::for_one(),
            };
            while self.is_worth_spinning(&mut me) {}
        }
    }

    /// Spins a little while the lock is held; the spinner keeps others from being woken.
    fn is_worth_spinning(&self, me: &mut Contender) -> bool {
        // ORDERING: Relaxed for all; a hint, and whoever takes the lock acquires.
        let word = self.word.load(Relaxed);
        if word & (LOCKED | STARVING) != LOCKED || !me.spin.again(word & WAITING != 0) {
            return false;
        }
        let may_announce = !me.is_woken && word & (WOKEN | WAITING) == WAITING;
        if may_announce
            && self.word.compare_exchange(word, word | WOKEN | SPINNING, Relaxed, Relaxed).is_ok()
        {
            me.is_woken = true;
        }
        true
    }

    /// True: the lock is the caller's. False: `node` is in the queue.
    fn take_or_queue(&self, node: &Node, me: &Contender) -> bool {
        let cleared = if me.is_woken { !(WOKEN | SPINNING) } else { !0 };
        // ORDERING: Relaxed; the exchanges below acquire.
        let mut word = self.word.load(Relaxed);
        while is_open(word) {
            let new = (word | LOCKED) & cleared;
            // ORDERING: Acquire as in `lock_at_once`.
            match self.word.compare_exchange(word, new, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        loop {
            let takes = is_open(word);
            let starving = if me.is_starving { STARVING } else { 0 };
            let set = if takes { LOCKED } else { WAITING | starving };
            let new = (word | set) & cleared;
            // ORDERING: Acquire as in `lock_at_once`. Release pairs with the Acquires of `settle`, by the
            // queue's lock too.
            match self.word.compare_exchange(word, new, AcqRel, Relaxed) {
                Ok(_) if takes => return true,
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if me.has_waited {
            // SAFETY: it stays on the caller's stack until `Waiters::wait` has returned.
            unsafe { queue.push_front(node) };
        } else {
            // SAFETY: as above.
            unsafe { queue.push_back(node) };
        }
        false
    }

    /// After a wait that has ended early, whose node is out of the queue.
    #[cold]
    fn forget_flags(&self) {
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        if queue.first().is_none() {
            // ORDERING: Relaxed; under the lock.
            self.word.fetch_and(!(WAITING | STARVING), Relaxed);
        }
    }

    /// Settles, then lets the waiter run that was woken, if nobody else would.
    #[cold]
    fn unlock_contended(&self) {
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        let waited = queue.waited();
        let mut wakes = Wakes::new();
        let gives_way = self.settle(&mut queue, &mut wakes);
        drop(queue);
        let woke = !wakes.is_empty();
        wakes.wake(critical);
        profile::released(WaitReason::MutexLock, waited);
        if woke && gives_way {
            give_way();
        }
    }

    /// I4. Wakes the first waiter, or gives it the lock. True: the caller should give way to it.
    fn settle(&self, queue: &mut Queue, wakes: &mut Wakes) -> bool {
        let Some(first) = queue.first() else {
            // ORDERING: Relaxed; under the lock.
            self.word.fetch_and(!(WAITING | STARVING), Relaxed);
            return false;
        };
        // ORDERING: Relaxed; the exchanges decide.
        let word = self.word.load(Relaxed);
        if word & LOCKED != 0 || !is_unsettled(word) {
            return false;
        }
        let age = now_ns().saturating_sub(first.since);
        if word & STARVING != 0 || age > STARVING_NS {
            self.give(queue, wakes);
            return true;
        }
        self.wake_first(queue, wakes);
        // It would wait for the rest of the caller's slice.
        is_busy()
    }

    /// Takes the lock for the first waiter, unless somebody was faster.
    fn give(&self, queue: &mut Queue, wakes: &mut Wakes) {
        // ORDERING: Relaxed; the exchanges decide.
        let mut word = self.word.load(Relaxed);
        loop {
            if word & LOCKED != 0 {
                return;
            }
            // ORDERING: Acquire as in `lock_at_once`, for the waiter; its wake carries it on.
            match self.word.compare_exchange(word, word | LOCKED, Acquire, Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        let mut taken = LOCKED;
        let mut is_late = false;
        while let Some(first) = queue.first() {
            let age = now_ns().saturating_sub(first.since);
            if queue.claim(first, Outcome::Granted, wakes) {
                (taken, is_late) = (0, age > STARVING_NS);
                break;
            }
        }
        // The lock goes back if all waits have ended.
        let cleared = match (queue.is_empty(), is_late) {
            (true, _) => WAITING | STARVING | taken,
            (false, false) => STARVING,
            (false, true) => 0,
        };
        // ORDERING: Release, for the case that the lock goes back: pairs with `lock_at_once`.
        self.word.fetch_and(!cleared, Release);
    }

    /// Lets the first waiter compete, unless somebody was faster.
    fn wake_first(&self, queue: &mut Queue, wakes: &mut Wakes) {
        // ORDERING: Relaxed for all; under the lock, and the woken one acquires when it takes the
        // lock.
        let mut word = self.word.load(Relaxed);
        while word & (LOCKED | WOKEN) == 0 {
            match self.word.compare_exchange(word, word | WOKEN, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if word & (LOCKED | WOKEN) != 0 {
            return;
        }
        let mut woken = WOKEN;
        while let Some(first) = queue.first() {
            if queue.claim(first, Outcome::Woken, wakes) {
                woken = 0;
                break;
            }
        }
        let waiting = if queue.is_empty() { WAITING } else { 0 };
        // ORDERING: Relaxed; as above.
        self.word.fetch_and(!(waiting | woken), Relaxed);
    }
}
