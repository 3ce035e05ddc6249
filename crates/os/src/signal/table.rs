//! Who wants which signals, and what the signals do.
//!
//! Invariant, under the lock: a signal that somebody wants has our handler, one that is to do nothing
//! is ignored, and any other does what it did before the first call. So what a call has asked for
//! holds when it returns, whatever the dispatcher is about to find. The model is
//! `tests/loom_signals.rs`.

use super::Signal;
use super::rt::{Mutex, MutexGuard, const_unless_modelled};
use std::mem;
use std::sync::PoisonError;

/// What signals do: the system's side.
pub(super) trait Actions {
    /// From now on the signal comes to the handler.
    fn install(&self, signal: Signal);
    /// From now on it does nothing.
    fn ignore(&self, signal: Signal);
    /// From now on it does what it did before.
    fn restore(&self, signal: Signal);
    /// Sends it to this process.
    fn raise(&self, signal: Signal);
}

/// One that wants to hear of signals.
pub(super) trait Listener {
    /// False: nobody listens any more.
    fn tell(&self, signal: Signal) -> bool;
}

pub(super) struct Table<L, A> {
    state: Mutex<State<L>>,
    actions: A,
}

struct State<L> {
    wishes: Vec<Wish<L>>,
    /// A bit for each signal that does nothing.
    ignored: u64,
}

struct Wish<L> {
    listener: L,
    /// A bit for each signal.
    signals: u64,
}

fn bits(signals: &[Signal]) -> u64 {
    signals.iter().fold(0, |bits, signal| bits | signal.bit())
}

impl<L: Listener, A: Actions> Table<L, A> {
    const_unless_modelled! {
        pub(super) fn new(actions: A) -> Table<L, A> {
            Table { state: Mutex::new(State { wishes: Vec::new(), ignored: 0 }), actions }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<L>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `listener` hears of these signals from now on.
    pub(super) fn add(&self, listener: L, signals: &[Signal]) {
        let mut state = self.lock();
        let bits = bits(signals);
        state.wishes.push(Wish { listener, signals: bits });
        state.ignored &= !bits;
        signals.iter().for_each(|signal| self.actions.install(*signal));
    }

    /// Nobody hears of these signals any more, and they do nothing.
    pub(super) fn ignore(&self, signals: &[Signal]) {
        let mut state = self.lock();
        state.ignored |= bits(signals);
        signals.iter().for_each(|signal| self.actions.ignore(*signal));
        let gone = state.remove(bits(signals));
        drop(state);
        // Dropping a sender closes its channel, which wakes whoever waits there.
        drop(gone);
    }

    /// Nobody hears of these signals any more, and they do what they did before.
    pub(super) fn reset(&self, signals: &[Signal]) {
        let mut state = self.lock();
        state.ignored &= !bits(signals);
        signals.iter().for_each(|signal| self.actions.restore(*signal));
        let gone = state.remove(bits(signals));
        drop(state);
        drop(gone);
    }

    /// Tells all that want to hear of it. Dispatcher only.
    pub(super) fn deliver(&self, signal: Signal) {
        let mut state = self.lock();
        let mut is_heard = false;
        let mut gone = Vec::new();
        for wish in mem::take(&mut state.wishes) {
            if wish.signals & signal.bit() != 0 {
                if !wish.listener.tell(signal) {
                    gone.push(wish);
                    continue;
                }
                is_heard = true;
            }
            state.wishes.push(wish);
        }
        if !is_heard && state.ignored & signal.bit() == 0 {
            // Nobody listens any more: it does what it did before, this time already.
            self.actions.restore(signal);
            self.actions.raise(signal);
        }
        drop(state);
        drop(gone);
    }
}

impl<L> State<L> {
    /// Takes these signals out of all wishes, and returns the wishes that are empty then.
    fn remove(&mut self, bits: u64) -> Vec<Wish<L>> {
        let mut gone = Vec::new();
        for wish in mem::take(&mut self.wishes) {
            let left = Wish { signals: wish.signals & !bits, ..wish };
            if left.signals == 0 { gone.push(left) } else { self.wishes.push(left) }
        }
        gone
    }
}
