//! Signals that have come, from handlers to the dispatcher.
//!
//! Steps of a signal: S1 the handler sets its bit, S2 it rings the bell; of the dispatcher: D1 it
//! waits for the bell, D2 it takes all bits, and then sends the messages. A bit that is set after D2
//! has its ring after D1, which ends the next wait. So no bit stays, and one that is set twice before D2
//! is one message. The model is `tests/loom_signals.rs`.

use super::bell::Bell;
use super::rt::{AtomicU64, const_unless_modelled};
use std::sync::atomic::Ordering::{Acquire, Release};

pub(super) struct Pending {
    /// A bit each. Written by: handlers. Taken by: the dispatcher.
    bits: AtomicU64,
    bell: Bell,
}

impl Pending {
    const_unless_modelled! {
        pub(super) fn new(bell: Bell) -> Pending {
            Pending { bits: AtomicU64::new(0), bell }
        }
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// S1 and S2. In a handler.
    pub(super) fn note(&self, bit: u64) {
        // ORDERING: S1; Release pairs with `wait`.
        self.bits.fetch_or(bit, Release);
        self.bell.ring();
    }

    /// D1 and D2. Dispatcher only.
    pub(super) fn wait(&self) -> u64 {
        self.bell.wait();
        // ORDERING: D2; Acquire pairs with `note`: who is told sees what came before the signal.
        self.bits.swap(0, Acquire)
    }
}
