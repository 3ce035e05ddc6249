//! What a connection is doing, as far as a shutdown has to know.
//!
//! One word, written by the connection's goroutine and by who shuts the server down:
//!
//! | phase | the connection | a shutdown makes it |
//! | --- | --- | --- |
//! | `IDLE` | waits for the first byte of a request | `ENDING`, and wakes it |
//! | `BUSY` | has a request | `LAST` |
//! | `LAST` | has a request, after which it ends | |
//! | `ENDING` | takes what has arrived already, and ends | |
//!
//! All orderings are Relaxed: each change is one read-modify-write of the same word, and nothing
//! else is handed over by it; who is woken looks at its socket, in the kernel.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const IDLE: u8 = 0;
const BUSY: u8 = 1;
const LAST: u8 = 2;
const ENDING: u8 = 3;

#[derive(Debug)]
pub(crate) struct Phase(AtomicU8);

/// Whether the connection may wait for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Rest {
    Waits,
    /// It may only take what has arrived.
    Ends,
}

/// Whether the rest of a request can still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Open,
    /// A shutdown has ended the reading side: there is only what has arrived.
    Cut,
}

/// What is left to do for who ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Ended {
    /// It waits: its socket's reading side is to be shut down.
    Wake,
    /// It ends by itself after its request, or ends already.
    ByItself,
}

impl Phase {
    pub(crate) const fn new() -> Phase {
        Phase(AtomicU8::new(BUSY))
    }

    fn change(&self, next: impl Fn(u8) -> u8) -> u8 {
        let changed = self.0.fetch_update(
            // Relaxed: see the head of this file.
            Relaxed,
            Relaxed,
            |phase| Some(next(phase)),
        );
        match changed {
            Ok(before) | Err(before) => before,
        }
    }

    /// The connection has no request any more.
    pub(crate) fn rest(&self) -> Rest {
        match self.change(|phase| if phase == BUSY { IDLE } else { ENDING }) {
            BUSY => Rest::Waits,
            _ => Rest::Ends,
        }
    }

    /// The first bytes of a request are here, or none will come.
    pub(crate) fn begin(&self) -> Begun {
        match self.change(|phase| if phase == IDLE { BUSY } else { LAST }) {
            IDLE => Begun::Open,
            _ => Begun::Cut,
        }
    }

    /// The server shuts down.
    pub(crate) fn end(&self) -> Ended {
        let next = |phase| match phase {
            IDLE => ENDING,
            BUSY => LAST,
            other => other,
        };
        match self.change(next) {
            IDLE => Ended::Wake,
            _ => Ended::ByItself,
        }
    }

    /// The present request is the last one.
    pub(crate) fn is_last(&self) -> bool {
        // Relaxed: see the head of this file.
        self.0.load(Relaxed) == LAST
    }
}

#[cfg(test)]
mod tests {
    use super::{BUSY, Begun, ENDING, Ended, IDLE, LAST, Phase, Relaxed, Rest};

    fn after(phase: u8, act: impl FnOnce(&Phase)) -> u8 {
        let word = Phase::new();
        // Relaxed: one thread.
        word.0.store(phase, Relaxed);
        act(&word);
        word.0.load(Relaxed)
    }

    #[test]
    fn every_transition() {
        let rest = |before, want, next| {
            assert_eq!(after(before, |p| assert_eq!(p.rest(), want)), next);
        };
        rest(BUSY, Rest::Waits, IDLE);
        rest(LAST, Rest::Ends, ENDING);
        rest(ENDING, Rest::Ends, ENDING);
        let end = |before, want, next| {
            assert_eq!(after(before, |p| assert_eq!(p.end(), want)), next);
        };
        end(IDLE, Ended::Wake, ENDING);
        end(BUSY, Ended::ByItself, LAST);
        end(LAST, Ended::ByItself, LAST);
        end(ENDING, Ended::ByItself, ENDING);
        let begin = |before, want, next| {
            assert_eq!(after(before, |p| assert_eq!(p.begin(), want)), next);
        };
        begin(IDLE, Begun::Open, BUSY);
        begin(ENDING, Begun::Cut, LAST);
    }
}
