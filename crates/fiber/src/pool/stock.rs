//! Idle fibers, the newest first, in portions that change hands as they are.
//!
//! ```text
//!   loose  --> F --> F --> F
//!   portions
//!     |
//!     F --> F --> F --> F      the head's `below` leads to the next portion
//!     |below
//!     F --> F --> F --> F
//! ```
//!
//! To count some off would be to walk through heads that nobody has in a cache, under the lock that
//! every beginning and end of a goroutine takes. Letting it go now and then does not help: whoever
//! sleeps for it is woken and finds it taken again (a million sleepers were up to 5 ms late so).
//!
//! Invariants
//! * I1. A portion is a chain through `next`; its first fiber knows its length. What is loose is such
//!   a chain too, of at most [`PORTION`].

use crate::fiber::Fiber;

/// How long a portion is at most.
pub(super) const PORTION: usize = 32;

pub(super) struct Stock {
    loose: Option<Fiber>,
    loose_count: usize,
    portions: Option<Fiber>,
    count: usize,
    /// The lowest `count` since [`take_low`](Stock::take_low).
    low: usize,
    /// The lowest `count` since [`take_lowest`](Stock::take_lowest), who looks more rarely.
    lowest: usize,
}

impl Stock {
    pub(super) const fn new() -> Stock {
        Stock { loose: None, loose_count: 0, portions: None, count: 0, low: 0, lowest: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn push(&mut self, mut fiber: Fiber) {
        if self.loose_count == PORTION {
            self.stow();
        }
        fiber.set_next(self.loose.take());
        self.loose = Some(fiber);
        self.loose_count += 1;
        self.count += 1;
    }

    pub(super) fn pop(&mut self) -> Option<Fiber> {
        self.unstow();
        let mut fiber = self.loose.take()?;
        self.loose = fiber.take_next();
        self.loose_count -= 1;
        self.uncount(1);
        Some(fiber)
    }

    /// What is loose becomes a portion.
    fn stow(&mut self) {
        let Some(mut first) = self.loose.take() else { return };
        first.set_below(self.portions.take(), std::mem::take(&mut self.loose_count));
        self.portions = Some(first);
    }

    /// If nothing is loose, the newest portion is.
    fn unstow(&mut self) {
        if self.loose.is_none()
            && let Some(mut first) = self.portions.take()
        {
            (self.portions, self.loose_count) = first.take_below();
            self.loose = Some(first);
        }
    }

    fn uncount(&mut self, taken: usize) {
        self.count -= taken;
        self.low = self.low.min(self.count);
        self.lowest = self.lowest.min(self.count);
    }

    /// Takes some for good, of those that have been idle all the time: a portion, or fewer if that is
    /// more than `most`.
    pub(super) fn take_surplus(&mut self, most: usize) -> Stock {
        let (low, lowest) = (self.low, self.lowest);
        let mut taken = Stock::new();
        self.unstow();
        if self.loose_count <= most {
            taken.loose = self.loose.take();
            taken.loose_count = std::mem::take(&mut self.loose_count);
            taken.count = taken.loose_count;
            self.uncount(taken.count);
        } else {
            for _ in 0..most {
                self.pop().into_iter().for_each(|fiber| taken.push(fiber));
            }
        }
        self.low = low.saturating_sub(taken.count);
        self.lowest = lowest.saturating_sub(taken.count);
        taken
    }

    /// Takes what [`take_surplus`](Stock::take_surplus) gave to another.
    pub(super) fn add(&mut self, mut some: Stock) {
        debug_assert!(some.portions.is_none(), "a portion at most");
        some.stow();
        let Some(mut first) = some.portions.take() else { return };
        let (_, count) = first.take_below();
        first.set_below(self.portions.take(), count);
        self.portions = Some(first);
        self.count += count;
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
        let all = std::mem::replace(self, Stock::new());
        Stock { low: 0, lowest: 0, ..all }
    }
}

#[cfg(test)]
mod tests {
    use super::{PORTION, Stock};
    use crate::fiber::Fiber;
    use crate::stack::Class;
    use crate::tls;

    fn fibers(count: usize) -> Vec<Fiber> {
        tls::init(None, None);
        (0..count).map(|_| Fiber::make(Class::SMALL).expect("memory")).collect()
    }

    fn end(all: Vec<Fiber>) {
        for fiber in all {
            // SAFETY: nothing ever ran on it, and it is in no stock any more.
            let remains = unsafe { fiber.destroy() };
            assert!(tls::wait_for_walkers());
            // SAFETY: waited for just now.
            remains.into_iter().for_each(|remains| unsafe { remains.release() });
        }
    }

    #[test]
    fn the_newest_comes_first_across_portions() {
        let all = fibers(3 * PORTION + 5);
        let mut stock = Stock::new();
        all.iter().for_each(|fiber| stock.push(*fiber));
        assert_eq!(stock.count(), all.len());
        // Around the end of a portion, to and fro.
        for _ in 0..3 {
            let some: Vec<_> = (0..7).filter_map(|_| stock.pop()).collect();
            some.into_iter().rev().for_each(|fiber| stock.push(fiber));
        }
        let popped: Vec<_> = std::iter::from_fn(|| stock.pop()).collect();
        assert!(popped.iter().eq(all.iter().rev()));
        assert_eq!(stock.count(), 0);
        end(all);
    }

    #[test]
    fn surplus_leaves_by_portions_and_none_is_lost() {
        let all = fibers(2 * PORTION + 5);
        let mut stock = Stock::new();
        all.iter().for_each(|fiber| stock.push(*fiber));
        stock.take_low();
        stock.take_lowest();
        let mut taken = Stock::new();
        for (most, expected) in [(100, 5), (PORTION - 1, PORTION - 1), (100, 1), (PORTION, PORTION)]
        {
            let some = stock.take_surplus(most);
            assert_eq!(some.count(), expected);
            taken.add(some);
        }
        assert_eq!((stock.count(), stock.low(), stock.take_lowest()), (0, 0, 0));
        assert_eq!(stock.take_surplus(3).count(), 0);
        taken.add(Stock::new());
        assert_eq!(taken.count(), all.len());
        let mut popped: Vec<_> = std::iter::from_fn(|| taken.pop()).collect();
        let mut expected = all.clone();
        popped.sort_by_key(Fiber::stack_top);
        expected.sort_by_key(Fiber::stack_top);
        assert!(popped == expected);
        end(all);
    }

    /// Surplus that leaves was idle all the time, as the rest was.
    #[test]
    fn what_leaves_for_good_takes_its_part_of_the_lowest_count() {
        let all = fibers(PORTION + 2);
        let mut stock = Stock::new();
        all.iter().for_each(|fiber| stock.push(*fiber));
        stock.take_low();
        let used = [stock.pop(), stock.pop(), stock.pop()];
        used.into_iter().flatten().for_each(|fiber| stock.push(fiber));
        assert_eq!(stock.low(), PORTION - 1, "three were in use");
        assert_eq!(stock.take_surplus(10).count(), 2, "what was loose");
        assert_eq!(stock.take_surplus(10).count(), 10);
        assert_eq!((stock.low(), stock.count()), (PORTION - 13, PORTION - 10));
        end(all);
    }
}
