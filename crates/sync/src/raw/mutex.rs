//! A mutex: a word for its holder, one for those who want it, and a queue for those who wait.
//!
//! As Go's. Normally a lock that becomes free is anybody's: the first waiter is woken and competes
//! with those who come along, which is what throughput wants, since those run already. A waiter
//! that is woken and loses goes back to the queue's front. Once the first waiter has waited for
//! 1 ms, it is given the lock by whoever lets go of it; and while one of those who were that late is
//! in the queue, nobody overtakes.
//!
//! `locked` says whether somebody has it. `flags` are of those who want it: WAITING (the queue is not
//! empty), WOKEN (a woken or spinning waiter is on its way, so nobody else is woken), SPINNING (beside
//! WOKEN: it was set by one that spins), STARVING (the lock is handed to the first waiter, without
//! becoming free), SYMMETRIC (below).
//!
//! A mutex that nobody waits for is taken by one locked instruction and given back by a plain store,
//! which spares two fifths of what the pair costs otherwise. The waiter pays for that:
//!
//! ```text
//!   holder                                waiter, with the queue's lock
//!   U0 flags == 0? else as below          W1 flags |= WAITING | SYMMETRIC
//!   U1 locked = FREE                      W2 membarrier, unless SYMMETRIC was set
//!   U2 flags == 0? done                   W3 locked FREE -> HELD? it has it; else it queues
//!   U3 a full barrier; WAITING? settle
//! ```
//!
//! As long as SYMMETRIC is set the holder's U1 is an exchange, a full barrier, as are W1 and W3 then, and
//! waiters need none that the kernel makes. A mutex begins like that, and a holder takes the flag back
//! after [`CALM`] unlocks in a row beside nobody.
//!
//! Invariants
//! * I1. WAITING and STARVING change under the queue's lock only. Whenever that is free a node in the
//!   queue implies WAITING, and so does STARVING.
//! * I2. Whoever makes `locked` HELD, or is given the lock, gives it back or on once.
//! * I3. WOKEN is cleared, and SPINNING with it, by one who was woken or has set it itself: when it has
//!   the lock, or when it queues (W1, so that it looks at the lock once more).
//! * I4. After each unlock that finds WAITING without WOKEN, or with STARVING, somebody settles.
//! * I5. Nobody sleeps through an unlock. Take a W3 that finds the lock HELD, and the unlock that ends
//!   that; it reads the flags after W1 was visible:
//!   - With U3 or an exchange: W1 and W3 are exchanges too, and one of two full barriers comes first.
//!   - With U2 alone it would have read 0 from before W1. By I6 that is from before SYMMETRIC was set
//!     last, and so from before the W2 that followed. Then U1 came before that W2 as well, which was
//!     made with the queue's lock and so before W3: W3 would have found the lock free, or taken again.
//! * I6. SYMMETRIC is cleared only by the holder, while no other flag is set. So flags that read 0 after a
//!   W1 mean that this waiter has the lock or has gone.
//!
//! `mutex/tests.rs` enumerates all orders of holders and waiters with store buffers: nobody sleeps for
//! ever, and without W2 or without U3's barrier somebody does.
//!
//! Rejected: a lock that always goes to the first waiter, which makes every operation a switch as
//! soon as there is one; waking without WOKEN, which makes every unlock a wake; `locked` among the
//! flags in one word, used here before, as Go's, where each unlock is a second locked instruction;
//! no SYMMETRIC, so that every wait is a `membarrier`, which interrupts all CPUs that run this process.

use super::{STARVING_NS, Spin, pick};
use crate::node::{Node, Outcome, Patience, Waited, Wish};
use crate::profile;
use crate::queue::{Queue, Waiters, Wakes};
use crate::rt::{
    AtomicU32, Critical, WaitReason, barrier, const_unless_modelled, fence, give_way,
    give_way_if_alone, is_busy, now_ns,
};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

const FREE: u32 = 0;
const HELD: u32 = 1;

const SYMMETRIC: u32 = 1 << 0;
const WOKEN: u32 = 1 << 1;
const WAITING: u32 = 1 << 2;
const STARVING: u32 = 1 << 3;
const SPINNING: u32 = 1 << 4;

/// After so many unlocks in a row beside nobody the next waiter may pay for the holders: they spare some
/// 2 ns each, and it pays some microseconds, on several CPUs perhaps.
const CALM: u32 = pick(1 << 14);

/// Whether the one who made a lock free beside these flags has to settle.
#[inline(always)]
fn is_unsettled(flags: u32) -> bool {
    flags & WAITING != 0 && flags & (WOKEN | STARVING) != WOKEN
}

/// Whether a free lock beside these flags is one who was woken's, and may wait for a processor.
#[inline(always)]
fn is_for_woken(flags: u32) -> bool {
    flags & (WOKEN | SPINNING) == WOKEN
}

/// A mutex without data.
pub(crate) struct RawMutex {
    locked: AtomicU32,
    flags: AtomicU32,
    /// Unlocks beside nobody, in a row. Written by: the holder, while SYMMETRIC is set.
    calm: AtomicU32,
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
            RawMutex {
                locked: AtomicU32::new(FREE),
                flags: AtomicU32::new(first_flags()),
                calm: AtomicU32::new(0),
                waiters: Waiters::new(),
            }
        }
    }

    #[inline]
    pub(crate) fn lock(&self) {
        if !self.try_lock() {
            self.lock_contended(Patience::Endless);
        }
    }

    /// False: the wait ended first.
    #[inline]
    pub(crate) fn lock_with(&self, patience: Patience<'_>) -> bool {
        self.try_lock() || self.lock_contended(patience)
    }

    /// Takes the lock if it is free, though others may wait.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> bool {
        // ORDERING: Acquire pairs with `unlock` and its kin; makes what was written under the lock
        // visible.
        self.locked.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    #[inline]
    pub(crate) fn unlock(&self) {
        // ORDERING: Relaxed (U0); whoever sets a flag meanwhile is seen below.
        let flags = self.flags.load(Relaxed);
        if flags != 0 {
            return self.unlock_symmetric(flags);
        }
        // ORDERING: Release pairs with `try_lock` (U1).
        self.locked.store(FREE, Release);
        barrier::light();
        // ORDERING: Relaxed (U2); the barrier pairs with W2, see I5.
        if self.flags.load(Relaxed) != 0 {
            self.unlock_symmetric_meanwhile();
        }
    }

    /// A waiter came between U0 and U2; others after it have no W2.
    #[cold]
    fn unlock_symmetric_meanwhile(&self) {
        // ORDERING: U1 before U3; pairs with W1.
        fence(SeqCst);
        // ORDERING: Relaxed (U3); by the fence.
        self.unlock_beside_others(self.flags.load(Relaxed));
    }

    /// Beside these flags.
    fn unlock_symmetric(&self, flags: u32) {
        if flags & STARVING != 0 {
            return self.hand_over();
        }
        self.count_calm(flags);
        self.release();
        // ORDERING: Relaxed (U2); `release` is a full barrier that pairs with W1, see I5.
        let flags = self.flags.load(Relaxed);
        self.unlock_beside_others(flags);
    }

    /// U1 with its barrier.
    #[inline(always)]
    fn release(&self) {
        // ORDERING: Release pairs with `try_lock`.
        self.locked.swap(FREE, Release);
        barrier::after_exchange();
    }

    /// Takes SYMMETRIC back if nobody has come for long. The holder, whose flag it is then.
    #[inline(always)]
    fn count_calm(&self, flags: u32) {
        // ORDERING: Relaxed for all; one holder after the other.
        let calm = if flags == SYMMETRIC { self.calm.load(Relaxed).saturating_add(1) } else { 0 };
        self.calm.store(calm, Relaxed);
        if calm >= CALM && barrier::is_asymmetric() {
            // ORDERING: Relaxed; I6, by the order of changes of the flags alone.
            let _ = self.flags.compare_exchange(SYMMETRIC, 0, Relaxed, Relaxed);
            self.calm.store(0, Relaxed);
        }
    }

    /// I4, for one who has made the lock free and found these flags then.
    #[inline(always)]
    fn unlock_beside_others(&self, flags: u32) {
        if is_unsettled(flags) {
            self.unlock_contended();
        } else if is_for_woken(flags) {
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
        if self.locked.load(Relaxed) == FREE {
            return false;
        }
        // ORDERING: as above.
        let flags = self.flags.load(Relaxed);
        if flags & STARVING != 0 || !me.spin.again(flags & WAITING != 0) {
            return false;
        }
        let may_announce = !me.is_woken && flags & (WOKEN | WAITING) == WAITING;
        if may_announce
            && self
                .flags
                .compare_exchange(flags, flags | WOKEN | SPINNING, Relaxed, Relaxed)
                .is_ok()
        {
            me.is_woken = true;
        }
        true
    }

    /// True: the lock is the caller's. False: `node` is in the queue.
    fn take_or_queue(&self, node: &Node, me: &Contender) -> bool {
        if self.looks_open() && self.try_lock() {
            self.forget_woken(me);
            return true;
        }
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        if self.looks_open() && self.try_lock() {
            self.forget_woken(me);
            return true;
        }
        let before = self.announce(me);
        if before & SYMMETRIC == 0 {
            barrier::heavy_or_wait();
        } else {
            barrier::after_exchange();
        }
        // Nobody else settles if the unlock did not see the flags yet (W3).
        if self.try_lock() {
            if queue.is_empty() {
                // ORDERING: Relaxed; under the queue's lock.
                self.flags.fetch_and(!(WAITING | STARVING), Relaxed);
            }
            return true;
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

    /// Whether it is worth trying. A hint, on which nothing depends; models always try.
    fn looks_open(&self) -> bool {
        // ORDERING: Relaxed for both; whoever takes the lock acquires.
        cfg!(loom) || self.locked.load(Relaxed) == FREE && self.flags.load(Relaxed) & STARVING == 0
    }

    /// For one that has the lock (I3).
    fn forget_woken(&self, me: &Contender) {
        if me.is_woken {
            // ORDERING: Relaxed; its unlock looks at the flags again.
            self.flags.fetch_and(!(WOKEN | SPINNING), Relaxed);
        }
    }

    /// W1, for one that is about to queue; the flags before.
    fn announce(&self, me: &Contender) -> u32 {
        let starving = if me.is_starving { STARVING } else { 0 };
        let cleared = if me.is_woken { WOKEN | SPINNING } else { 0 };
        // ORDERING: Relaxed; the exchange decides.
        let mut flags = self.flags.load(Relaxed);
        loop {
            let new = (flags | WAITING | SYMMETRIC | starving) & !cleared;
            // ORDERING: Relaxed; a barrier follows.
            match self.flags.compare_exchange(flags, new, Relaxed, Relaxed) {
                Ok(before) => return before,
                Err(now) => flags = now,
            }
        }
    }

    /// After a wait that has ended early, whose node is out of the queue.
    #[cold]
    fn forget_flags(&self) {
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        if queue.first().is_none() {
            // ORDERING: Relaxed; under the lock.
            self.flags.fetch_and(!(WAITING | STARVING), Relaxed);
        }
    }

    /// Settles, then lets the waiter run that was woken, if nobody else would.
    #[cold]
    fn unlock_contended(&self) {
        self.wake_beside(|queue, wakes| self.settle(queue, wakes));
    }

    /// An unlock while somebody starves: the lock does not become free.
    #[cold]
    fn hand_over(&self) {
        self.wake_beside(|queue, wakes| {
            self.give(queue, wakes);
            true
        });
    }

    /// Calls `f` with the queue and wakes whom it claimed. If it says so the caller then gives way.
    fn wake_beside(&self, f: impl FnOnce(&mut Queue, &mut Wakes) -> bool) {
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        let waited = queue.waited();
        let mut wakes = Wakes::new();
        let gives_way = f(&mut queue, &mut wakes);
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
            self.flags.fetch_and(!(WAITING | STARVING), Relaxed);
            return false;
        };
        // ORDERING: Relaxed for both. Who has taken it meanwhile sees the flags in its turn (I5).
        let is_held = self.locked.load(Relaxed) == HELD;
        // ORDERING: as above.
        let flags = self.flags.load(Relaxed);
        if is_held || !is_unsettled(flags) {
            return false;
        }
        let age = now_ns().saturating_sub(first.since);
        if flags & STARVING != 0 || age > STARVING_NS {
            // Unless somebody was faster.
            if self.try_lock() {
                self.give(queue, wakes);
            }
            return true;
        }
        self.wake_first(queue, wakes);
        // It would wait for the rest of the caller's slice.
        is_busy()
    }

    /// Gives the lock, which is the caller's, to the first waiter; back if all waits have ended.
    fn give(&self, queue: &mut Queue, wakes: &mut Wakes) {
        let (mut is_given, mut is_late) = (false, false);
        while let Some(first) = queue.first() {
            let age = now_ns().saturating_sub(first.since);
            // What was written under the lock goes with the wake.
            if queue.claim(first, Outcome::Granted, wakes) {
                (is_given, is_late) = (true, age > STARVING_NS);
                break;
            }
        }
        let cleared = match (queue.is_empty(), is_late) {
            (true, _) => WAITING | STARVING,
            (false, false) => STARVING,
            (false, true) => 0,
        };
        // ORDERING: Relaxed; under the lock.
        self.flags.fetch_and(!cleared, Relaxed);
        if !is_given {
            // The queue is empty, and who comes now needs its lock first, which makes this visible.
            self.release();
        }
    }

    /// Lets the first waiter compete.
    fn wake_first(&self, queue: &mut Queue, wakes: &mut Wakes) {
        // ORDERING: Relaxed for all; under the lock, and the woken one acquires when it takes the
        // lock.
        let mut flags = self.flags.load(Relaxed);
        while flags & WOKEN == 0 {
            match self.flags.compare_exchange(flags, flags | WOKEN, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => flags = now,
            }
        }
        if flags & WOKEN != 0 {
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
        self.flags.fetch_and(!(waiting | woken), Relaxed);
    }
}

#[cfg(not(loom))]
const fn first_flags() -> u32 {
    SYMMETRIC
}

/// A model begins where the production type comes to after many turns.
#[cfg(loom)]
fn first_flags() -> u32 {
    if barrier::is_asymmetric() { 0 } else { SYMMETRIC }
}

#[cfg(all(test, not(loom)))]
mod tests;
