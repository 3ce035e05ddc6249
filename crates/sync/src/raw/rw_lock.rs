//! A lock for readers and writers: one word, and one queue for both.
//!
//! Readers join other readers only while nobody waits, so a writer waits for those who read when it
//! came, not for those who come later. A free lock is anybody's, until somebody starves. When it
//! becomes free the first in the queue is woken and competes, a reader with all others of the
//! queue, or is given the lock once it has waited for 1 ms, as in the mutex. So neither side can keep
//! the other out.
//!
//! Go's goes to the waiting writer each time, and to all readers after it; then each collision
//! makes everybody wait for somebody who has yet to run.
//!
//! Word: WRITER, WOKEN (a woken writer is on its way), WAITING (the queue is not empty), STARVING
//! (a free lock is the first waiter's), and the number of readers above.
//!
//! Invariants
//! * I1. WAITING and STARVING change under the queue's lock only. STARVING implies WAITING.
//! * I2. Whoever sets WRITER or adds a reader, or is given the lock, undoes it once. A free lock
//!   with STARVING is taken only by [`settle`](RawRwLock::settle), for the first waiter.
//! * I3. WOKEN is cleared by the writer that was woken: when it takes the lock, or when it queues
//!   (with the lock taken, or STARVING seen set, so that a release is to come). Readers are woken
//!   without it; each takes the lock, whose release settles, or queues.
//! * I4. After each release that leaves the lock free and WAITING without WOKEN, or with STARVING,
//!   somebody settles.
//! * I5. [`read`](RawRwLock::read) adds its reader first and looks then, since an addition can't
//!   fail beside other readers, as Go's. One that comes too late is a guest: counted, also beside
//!   WRITER, without having the lock, until it has taken itself off, which is a release (I4). Hence
//!   a count says nothing while WRITER is set, and a lock is free only without guests.

#[cfg(all(test, not(loom)))]
mod tests;

use super::{STARVING_NS, Spin};
use crate::node::{Node, Outcome, Patience, Waited, Wish};
use crate::profile;
use crate::queue::{Queue, Waiters, Wakes};
use crate::rt::{
    AtomicUsize, Critical, WaitReason, const_unless_modelled, give_way, give_way_if_alone, is_busy,
    now_ns,
};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const WRITER: usize = 1 << 0;
const WOKEN: usize = 1 << 1;
const WAITING: usize = 1 << 2;
const STARVING: usize = 1 << 3;
const ONE_READER: usize = 1 << 4;

/// Nobody has the lock.
fn is_free(word: usize) -> bool {
    word < ONE_READER && word & WRITER == 0
}

/// Readers are counted and no writer has it: who adds a reader to this very word has the lock.
fn is_read(word: usize) -> bool {
    word >= ONE_READER && word & WRITER == 0
}

fn may_read(word: usize) -> bool {
    word & (WRITER | STARVING) == 0 && (word & WAITING == 0 || word < ONE_READER)
}

fn may_write(word: usize) -> bool {
    word & (WRITER | STARVING) == 0 && word < ONE_READER
}

/// Whether the one who has left this word has to settle.
#[inline(always)]
fn is_unsettled(word: usize) -> bool {
    word & WAITING != 0 && is_free(word) && word & (WOKEN | STARVING) != WOKEN
}

/// Whether a lock with this word is free for the writer that was woken, and may wait for a processor.
#[inline(always)]
fn is_for_woken(word: usize) -> bool {
    word & WOKEN != 0 && is_free(word)
}

/// A lock for readers and writers, without data.
pub(crate) struct RawRwLock {
    word: AtomicUsize,
    waiters: Waiters,
}

/// How one side takes the lock.
#[derive(Clone, Copy)]
struct Side {
    may_take: fn(usize) -> bool,
    adds: usize,
    wish: Wish,
    reason: WaitReason,
}

const READ: Side = Side {
    may_take: may_read,
    adds: ONE_READER,
    wish: Wish::Shared,
    reason: WaitReason::RwMutexRLock,
};
const WRITE: Side =
    Side { may_take: may_write, adds: WRITER, wish: Wish::Whole, reason: WaitReason::RwMutexLock };

/// One that wants the lock and did not get it at once.
struct Contender {
    side: Side,
    /// WOKEN is this one's to clear.
    is_woken: bool,
    is_starving: bool,
}

impl RawRwLock {
    const_unless_modelled! {
        pub(crate) fn new() -> RawRwLock {
            RawRwLock { word: AtomicUsize::new(0), waiters: Waiters::new() }
        }
    }

    /// False: the wait has ended without it.
    pub(crate) fn read_with(&self, patience: Patience<'_>) -> bool {
        self.try_take(READ) || self.lock_contended(READ, patience)
    }

    /// False: the wait has ended without it.
    pub(crate) fn write_with(&self, patience: Patience<'_>) -> bool {
        self.write_at_once() || self.lock_contended(WRITE, patience)
    }

    #[inline]
    pub(crate) fn read(&self) {
        // ORDERING: Acquire pairs with `write_unlock`; makes what was written visible.
        let word = self.word.fetch_add(ONE_READER, Acquire);
        if !may_read(word) {
            self.read_contended();
        }
    }

    /// Takes the guest back (I5), then waits.
    #[cold]
    fn read_contended(&self) {
        // ORDERING: Relaxed; it has not read.
        let word = self.word.fetch_sub(ONE_READER, Relaxed);
        if is_unsettled(word - ONE_READER) {
            self.unlock_contended();
        }
        self.lock_contended(READ, Patience::Endless);
    }

    #[inline]
    pub(crate) fn write(&self) {
        if !self.write_at_once() {
            self.lock_contended(WRITE, Patience::Endless);
        }
    }

    #[inline(always)]
    fn write_at_once(&self) -> bool {
        // ORDERING: Acquire pairs with both unlocks.
        match self.word.compare_exchange(0, WRITER, Acquire, Relaxed) {
            Ok(_) => true,
            Err(word) => {
                may_write(word)
                    // ORDERING: as above.
                    && self.word.compare_exchange(word, word | WRITER, Acquire, Relaxed).is_ok()
            }
        }
    }

    #[inline]
    pub(crate) fn try_read(&self) -> bool {
        self.try_take(READ)
    }

    #[inline]
    pub(crate) fn try_write(&self) -> bool {
        self.try_take(WRITE)
    }

    #[inline]
    fn try_take(&self, side: Side) -> bool {
        // ORDERING: Relaxed; the exchange acquires.
        let mut word = self.word.load(Relaxed);
        while (side.may_take)(word) {
            // ORDERING: Acquire as in `read` and `write`.
            match self.word.compare_exchange(word, word + side.adds, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    #[inline]
    pub(crate) fn read_unlock(&self) {
        // ORDERING: Release pairs with `write`: what was read is read before it is overwritten.
        let word = self.word.fetch_sub(ONE_READER, Release) - ONE_READER;
        if is_unsettled(word) || is_for_woken(word) {
            self.unlock_beside_others(word);
        }
    }

    #[inline]
    pub(crate) fn write_unlock(&self) {
        // ORDERING: Release pairs with `read` and `write`.
        let word = self.word.fetch_sub(WRITER, Release) - WRITER;
        if is_unsettled(word) || is_for_woken(word) {
            self.unlock_beside_others(word);
        }
    }

    /// As the mutex's.
    #[cold]
    fn unlock_beside_others(&self, word: usize) {
        if is_unsettled(word) {
            self.unlock_contended();
        } else {
            // Whoever has passed the one that was woken, in a round of fairness for instance, could
            // take the lock again and again until its slice is over.
            give_way_if_alone();
        }
    }

    /// Makes a writer's lock a reader's. Those who wait go on waiting: the lock is still taken.
    pub(crate) fn downgrade(&self) {
        // ORDERING: Release pairs with `read`; as `write_unlock`.
        self.word.fetch_add(ONE_READER - WRITER, Release);
        // Readers may share it now, unless a writer waits.
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        let mut wakes = Wakes::new();
        if queue.first().is_some_and(|first| first.wish == Wish::Shared) {
            self.admit_readers(&mut queue, &mut wakes);
            self.publish(&queue, false);
        }
        drop(queue);
        wakes.wake(critical);
    }

    #[cold]
    fn lock_contended(&self, side: Side, patience: Patience<'_>) -> bool {
        self.spin(side);
        let node = Node::new(side.wish, now_ns());
        let mut me = Contender { side, is_woken: false, is_starving: false };
        let mut has_waited = false;
        loop {
            if self.take_or_queue(&node, &me, has_waited) {
                return true;
            }
            match self.waiters.wait(&node, side.reason, patience) {
                Waited::Claimed(Outcome::Granted) => return true,
                Waited::Claimed(Outcome::Woken) => {}
                Waited::Ended => {
                    self.forget_flags();
                    return false;
                }
            }
            node.renew();
            has_waited = true;
            me.is_woken = side.wish == Wish::Whole;
            me.is_starving = now_ns().saturating_sub(node.since) > STARVING_NS;
            self.spin(side);
        }
    }

    /// Spins a little while the lock is not the side's to take.
    fn spin(&self, side: Side) {
        let mut spin = Spin::for_shared();
        loop {
            // ORDERING: Relaxed; a hint, and whoever takes the lock acquires.
            let word = self.word.load(Relaxed);
            if (side.may_take)(word) || word & STARVING != 0 || !spin.again(word & WAITING != 0) {
                return;
            }
        }
    }

    /// True: the lock is the caller's. False: `node` is in the queue.
    fn take_or_queue(&self, node: &Node, me: &Contender, has_waited: bool) -> bool {
        let cleared = if me.is_woken { !WOKEN } else { !0 };
        // ORDERING: Relaxed; the exchanges below acquire.
        let mut word = self.word.load(Relaxed);
        while (me.side.may_take)(word) {
            let new = (word + me.side.adds) & cleared;
            // ORDERING: Acquire as in `read` and `write`.
            match self.word.compare_exchange(word, new, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        let critical = Critical::enter();
        let mut queue = self.waiters.lock(&critical);
        loop {
            let takes = (me.side.may_take)(word);
            let starving = if me.is_starving { STARVING } else { 0 };
            let set = if takes { word + me.side.adds } else { word | WAITING | starving };
            let new = set & cleared;
            // ORDERING: Acquire as in `read` and `write`; Release pairs with who settles, by the
            // queue's lock too.
            match self.word.compare_exchange(word, new, AcqRel, Relaxed) {
                Ok(_) if takes => return true,
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if has_waited {
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
        let mut wakes = Wakes::new();
        // Readers behind a writer that has gone may join those who read.
        let only_shared = queue.first().is_some_and(|first| first.wish == Wish::Shared);
        // ORDERING: Relaxed; a writer can't come in between without waiting for this reader.
        if only_shared && is_read(self.word.load(Relaxed)) {
            self.admit_behind_reader(&mut queue, &mut wakes);
        }
        self.publish(&queue, false);
        drop(queue);
        wakes.wake(critical);
        self.settle_if_needed();
    }

    /// Settles, then lets those run that were woken, if nobody else would.
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
        profile::released(WaitReason::RwMutexLock, waited);
        if woke && gives_way {
            give_way();
        }
    }

    fn settle_if_needed(&self) {
        // ORDERING: Relaxed; a hint, `settle` looks again under the lock.
        if is_unsettled(self.word.load(Relaxed)) {
            self.unlock_contended();
        }
    }

    /// I4. Wakes readers or a writer, or gives them the lock. True: the caller should give way to
    /// them.
    fn settle(&self, queue: &mut Queue, wakes: &mut Wakes) -> bool {
        while let Some(first) = queue.first() {
            // ORDERING: Relaxed; the exchanges decide.
            let word = self.word.load(Relaxed);
            if !is_unsettled(word) {
                return false;
            }
            let age = now_ns().saturating_sub(first.since);
            let is_late = age > STARVING_NS;
            let gives = is_late || word & STARVING != 0;
            let settled = match (first.wish, gives) {
                (Wish::Shared, true) => self.let_readers_in(word, queue, wakes, is_late),
                (Wish::Shared, false) => self.wake_readers(queue, wakes),
                (_, true) => self.give(word, queue, wakes, is_late),
                (_, false) => self.wake_first(word, queue, wakes),
            };
            if settled {
                // Else they would wait for the rest of the caller's slice.
                return gives || is_busy();
            }
        }
        self.publish(queue, true);
        false
    }

    /// Sets the flags by what is in the queue. Under its lock.
    fn publish(&self, queue: &Queue, calm: bool) {
        let cleared = match (queue.is_empty(), calm) {
            (true, _) => WAITING | STARVING,
            (false, true) => STARVING,
            (false, false) => 0,
        };
        // ORDERING: Relaxed; under the lock.
        self.word.fetch_and(!cleared, Relaxed);
    }

    /// Lets all readers of the queue compete. False: none was there any more.
    ///
    /// They have no share until they run: whoever runs would wait for all of them, one by one, and
    /// those who spin meanwhile would keep the processors from them.
    fn wake_readers(&self, queue: &mut Queue, wakes: &mut Wakes) -> bool {
        let are_woken = queue.claim_shared(Outcome::Woken, wakes, || (), || ());
        self.publish(queue, false);
        are_woken
    }

    /// Lets all readers of the queue in. False: somebody was faster, or none was there any more.
    fn let_readers_in(
        &self,
        word: usize,
        queue: &mut Queue,
        wakes: &mut Wakes,
        is_late: bool,
    ) -> bool {
        // One for the caller, which keeps writers out.
        // ORDERING: Acquire as in `read`, for those let in; their wakes carry it on.
        if self.word.compare_exchange(word, word + ONE_READER, Acquire, Relaxed).is_err() {
            return false;
        }
        self.admit_readers(queue, wakes);
        self.publish(queue, !is_late);
        // ORDERING: Release pairs with `write`; as `read_unlock`.
        let left = self.word.fetch_sub(ONE_READER, Release) - ONE_READER;
        left >= ONE_READER
    }

    /// Lets the readers of the queue join one who can't be counted on to stay. False if it has left.
    fn admit_behind_reader(&self, queue: &mut Queue, wakes: &mut Wakes) {
        // ORDERING: Relaxed; the exchanges decide.
        let mut word = self.word.load(Relaxed);
        while is_read(word) {
            // ORDERING: Acquire as in `read`, for those let in; their wakes carry it on.
            match self.word.compare_exchange(word, word + ONE_READER, Acquire, Relaxed) {
                Ok(_) => {
                    self.admit_readers(queue, wakes);
                    // ORDERING: Release pairs with `write`; as `read_unlock`. Who leaves the lock
                    // free here settles afterwards.
                    self.word.fetch_sub(ONE_READER, Release);
                    return;
                }
                Err(now) => word = now,
            }
        }
    }

    /// The lock is held by readers, of whom the caller knows one to stay.
    fn admit_readers(&self, queue: &mut Queue, wakes: &mut Wakes) {
        queue.claim_shared(
            Outcome::Granted,
            wakes,
            // ORDERING: Acquire as in `read`, for those let in; their wakes carry it on.
            || _ = self.word.fetch_add(ONE_READER, Acquire),
            // ORDERING: Relaxed; it has not read.
            || _ = self.word.fetch_sub(ONE_READER, Relaxed),
        );
    }

    /// Takes the lock for the writer that is first. False: look again.
    fn give(&self, word: usize, queue: &mut Queue, wakes: &mut Wakes, is_late: bool) -> bool {
        // ORDERING: Acquire as in `write`, for the waiter; its wake carries it on.
        if self.word.compare_exchange(word, word | WRITER, Acquire, Relaxed).is_err() {
            return false;
        }
        let given = Self::claim_writer(queue, Outcome::Granted, wakes);
        self.publish(queue, !is_late);
        if !given {
            // ORDERING: Release pairs with `read` and `write`: the lock goes back.
            self.word.fetch_and(!WRITER, Release);
        }
        given
    }

    /// Lets the writer that is first compete. False: look again.
    fn wake_first(&self, word: usize, queue: &mut Queue, wakes: &mut Wakes) -> bool {
        // ORDERING: Relaxed for all; under the lock, and the woken one acquires when it takes the
        // lock.
        if self.word.compare_exchange(word, word | WOKEN, Relaxed, Relaxed).is_err() {
            return false;
        }
        let woken = Self::claim_writer(queue, Outcome::Woken, wakes);
        self.publish(queue, false);
        if !woken {
            // ORDERING: Relaxed; as above.
            self.word.fetch_and(!WOKEN, Relaxed);
        }
        woken
    }

    /// Claims the first in the queue, if it is a writer. Looks once: its wait may end at any time,
    /// and the next one be a reader.
    fn claim_writer(queue: &mut Queue, outcome: Outcome, wakes: &mut Wakes) -> bool {
        let first = queue.first().filter(|first| first.wish == Wish::Whole);
        first.is_some_and(|first| queue.claim(first, outcome, wakes))
    }
}
