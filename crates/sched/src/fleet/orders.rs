//! Processors that wait for a machine, and the starter, who finds one for them.
//!
//! * Who orders: O1 has found no machine asleep; O2 enters the order; O3 wakes the starter.
//! * A machine that goes to sleep: M1 is among the sleeping; M2 a fence; M3 wakes the starter if there
//!   is an order.
//! * One that is born: B1 has looked for an order; B2 counts as born; B3 a fence; B4 as M3.
//! * The starter: S1 are there more orders than births? S2 gives one to a machine that sleeps; S3 or
//!   has one made; else it sleeps until it is woken.
//!
//! No order stays while a machine sleeps or can be made. O3 makes the starter look after each order.
//! It leaves one only if no machine sleeps and none can be made, or for a birth. In the first case
//! a machine that comes to sleep later has not been seen in S2, so that M3 comes after S1, and sees the
//! order as S1 did; the second attempt at making one is the starter's own, after a while. In the
//! second case the one that is born takes it in B1, or had looked before: then B2 comes after S1, and B3
//! sees to it that B4 finds what S1 has found. Without B4 the order stays until some machine sleeps or
//! comes back from a call, since the one that was born may have got another processor.
//!
//! The model is `tests/loom_fleet.rs`.

use crate::rt::{AtomicU32, Lock, Parker, const_unless_modelled, fence};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

/// At most `N`, of processors of type `P`.
pub(crate) struct Orders<P, const N: usize> {
    queue: Lock<Queue<P, N>>,
    /// How many there are. Written under the lock.
    count: AtomicU32,
    /// Machines whose thread has not come to look for its order yet.
    births: AtomicU32,
    starter: Parker,
}

/// First in, first out, from `first` on: a processor that waited while others come and go again and
/// again would keep its timers waiting.
struct Queue<P, const N: usize> {
    waiting: [Option<P>; N],
    first: usize,
    count: usize,
}

/// Machines, as far as the starter deals with them.
pub(crate) trait Crew {
    type Processor;
    type Machine;
    type Refusal;

    /// Takes a machine that sleeps.
    fn take_sleeping(&self) -> Option<Self::Machine>;

    /// Puts it back.
    fn give_sleeping(&self, machine: Self::Machine);

    /// Wakes it with a processor.
    fn send(&self, machine: Self::Machine, p: Self::Processor);

    /// Makes one, between [`Orders::begin_birth`] and [`Orders::born`].
    fn make(&self) -> Result<(), Self::Refusal>;
}

impl<P, const N: usize> Orders<P, N> {
    const_unless_modelled! {
        pub(crate) fn new() -> Orders<P, N> {
            Orders {
                queue: Lock::new(Queue { waiting: [const { None }; N], first: 0, count: 0 }),
                count: AtomicU32::new(0),
                births: AtomicU32::new(0),
                starter: Parker::new(),
            }
        }
    }

    /// O2 and O3. Inside the runtime.
    pub(crate) fn push(&self, p: P) {
        let mut queue = self.queue.lock();
        let last = (queue.first + queue.count) % N;
        queue.waiting[last] = Some(p);
        queue.count += 1;
        self.publish(&queue);
        drop(queue);
        self.starter.wake();
    }

    /// Takes the processor that has waited longest.
    pub(crate) fn take(&self) -> Option<P> {
        if !self.has_any() {
            return None;
        }
        let mut queue = self.queue.lock();
        queue.count = queue.count.checked_sub(1)?;
        self.publish(&queue);
        let first = queue.first;
        queue.first = (first + 1) % N;
        queue.waiting[first].take()
    }

    /// Puts `p` last and takes the first, at no moment of which others see fewer: `p` itself if there
    /// is none.
    pub(crate) fn exchange(&self, p: P) -> P {
        let mut queue = self.queue.lock();
        let (first, last) = (queue.first, (queue.first + queue.count) % N);
        let Some(next) = queue.waiting[first].take() else { return p };
        // The last place is the one after the others, or the one that is free now.
        queue.waiting[last] = Some(p);
        queue.first = (first + 1) % N;
        next
    }

    fn publish(&self, queue: &Queue<P, N>) {
        // ORDERING: Relaxed; see `has_any`.
        self.count.store(queue.count as u32, Relaxed);
    }

    /// Whether a processor waits for a machine; a hint.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        // ORDERING: Relaxed; who must not miss one comes from under a lock or a fence.
        self.count.load(Relaxed) > 0
    }

    /// M2 and M3: an order that nobody could serve is for the caller.
    #[inline]
    pub(crate) fn machine_sleeps(&self) {
        // ORDERING: M2, between the locks of M1 and of O2.
        fence(SeqCst);
        self.call_if_any();
    }

    /// Something has changed that may help an order.
    #[inline]
    pub(crate) fn call_if_any(&self) {
        if self.has_any() {
            self.starter.wake();
        }
    }

    /// Somebody has left other work for the starter.
    pub(crate) fn call_starter(&self) {
        self.starter.wake();
    }

    /// Where the starter sleeps.
    pub(crate) fn starter(&self) -> &Parker {
        &self.starter
    }

    /// A machine is about to be made. Starter only.
    pub(crate) fn begin_birth(&self) {
        // ORDERING: AcqRel, as in `born`.
        self.births.fetch_add(1, AcqRel);
    }

    /// It could not be made. Starter only.
    pub(crate) fn call_off_birth(&self) {
        // ORDERING: AcqRel, as in `born`.
        self.births.fetch_sub(1, AcqRel);
    }

    /// B2 to B4: the new machine has looked for an order.
    pub(crate) fn born(&self) {
        // ORDERING: AcqRel pairs with `exceed_births`.
        self.births.fetch_sub(1, AcqRel);
        // ORDERING: B3, which pairs with the fence in `exceed_births`.
        fence(SeqCst);
        self.call_if_any();
    }

    /// Machines that will look for an order.
    pub(crate) fn births(&self) -> u32 {
        // ORDERING: Acquire: a machine that was born has taken its order before.
        self.births.load(Acquire)
    }

    /// S1.
    fn exceed_births(&self) -> bool {
        // ORDERING: Relaxed look. The fence pairs with B3: if a birth is seen that is over, the look
        // after it finds the orders that are seen here.
        let count = self.count.load(Relaxed);
        fence(SeqCst);
        count > self.births()
    }

    /// Finds machines for all orders. An error: one is left that can't be served now. Starter only.
    pub(crate) fn serve<C: Crew<Processor = P>>(&self, crew: &C) -> Result<(), C::Refusal> {
        while self.exceed_births() {
            let Some(machine) = crew.take_sleeping() else {
                crew.make()?;
                continue;
            };
            match self.take() {
                Some(p) => crew.send(machine, p),
                None => crew.give_sleeping(machine),
            }
        }
        Ok(())
    }
}
