//! A list of fibers through their heads, newest first.

use crate::fiber::Fiber;

pub(super) struct Stock {
    first: Option<Fiber>,
    count: usize,
    /// The lowest `count` since [`take_low`](Stock::take_low).
    low: usize,
    /// The lowest `count` since [`take_lowest`](Stock::take_lowest), who looks more rarely.
    lowest: usize,
}

impl Stock {
    pub(super) const fn new() -> Stock {
        Stock { first: None, count: 0, low: 0, lowest: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn push(&mut self, mut fiber: Fiber) {
        fiber.set_next(self.first.take());
        self.first = Some(fiber);
        self.count += 1;
    }

    pub(super) fn pop(&mut self) -> Option<Fiber> {
        let mut fiber = self.first.take()?;
        self.first = fiber.take_next();
        self.count -= 1;
        self.low = self.low.min(self.count);
        self.lowest = self.lowest.min(self.count);
        Some(fiber)
    }

    /// Takes one for good, of those that have been idle all the time.
    pub(super) fn pop_surplus(&mut self) -> Option<Fiber> {
        let (low, lowest) = (self.low.saturating_sub(1), self.lowest.saturating_sub(1));
        let fiber = self.pop()?;
        (self.low, self.lowest) = (low, lowest);
        Some(fiber)
    }

    /// How many fibers have been idle ever since the last [`take_low`](Stock::take_low).
    pub(super) fn low(&self) -> usize {
        self.low
    }

    /// How many fibers have been idle ever since the last call.
    pub(super) fn take_low(&mut self) -> usize {
        std::mem::replace(&mut self.low, self.count)
    }

    /// As [`take_low`](Stock::take_low), for collections.
    pub(super) fn take_lowest(&mut self) -> usize {
        std::mem::replace(&mut self.lowest, self.count)
    }

    /// Takes all fibers at once, however many they are.
    pub(super) fn take_all(&mut self) -> Stock {
        (self.low, self.lowest) = (0, 0);
        Stock { first: self.first.take(), count: std::mem::take(&mut self.count), ..Stock::new() }
    }
}
