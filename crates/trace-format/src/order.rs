//! The one order that the events of all threads have, by the rules that Go's reader checks.
//!
//! Times only say which thread's event to try first. What counts is the states: a goroutine begins to
//! run on one thread after it was made runnable on another, whatever their clocks said. An event that
//! can't be next waits while others are tried; if none can be next the trace is broken.
//!
//! Rules of the scheduler that every trace shows, checked here with Go's: a goroutine runs on one
//! processor, a processor is one thread's, a goroutine that was blocked is unblocked before it runs.

mod rules;
mod state;

pub use state::{Context, GoStatus, ProcStatus};

use crate::event::Event;
use crate::read::{Batch, Generation};
use crate::sample::CpuSample;
use state::State;
use std::collections::BinaryHeap;
use std::fmt;

/// An event in its place in the order.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The thread whose event it is.
    pub thread: u64,
    /// The event.
    pub event: Event,
    /// What the thread had in hand before it.
    pub before: Context,
    /// And after it.
    pub after: Context,
}

/// A trace that can't have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// In which generation.
    pub generation: u64,
    /// Why.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "generation {}: {}", self.generation, self.what)
    }
}

impl std::error::Error for Broken {}

/// What is known after the generations so far.
#[derive(Clone, Debug, Default)]
pub struct Order {
    state: State,
}

/// A thread's next event.
struct Next<'a> {
    thread: u64,
    event: Event,
    rest: std::vec::IntoIter<Batch<'a>>,
    batch: Batch<'a>,
}

impl Order {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Order {
        Order::default()
    }

    /// Puts the next generation's events in order and calls `see` for each.
    ///
    /// # Errors
    /// If there is no such order, or an event names what the generation does not define.
    pub fn check(
        &mut self,
        generation: &Generation<'_>,
        mut see: impl FnMut(&Order, &Seen),
    ) -> Result<(), Broken> {
        self.state.begin(generation.number);
        let broken = |what: String| Broken { generation: generation.number, what };
        for CpuSample { stack, .. } in &generation.samples {
            if *stack != 0 && !generation.stacks.contains_key(stack) {
                return Err(broken(format!("found invalid stack ID {stack} for a CPU sample")));
            }
        }
        let mut heads = BinaryHeap::new();
        for (thread, batches) in &generation.threads {
            let mut rest = batches.clone().into_iter();
            let Some(batch) = rest.next() else { continue };
            let head = next(*thread, batch, rest).map_err(&broken)?;
            heads.extend(head);
        }
        let mut refused: Vec<Next<'_>> = Vec::new();
        while let Some(head) = heads.pop() {
            let before = self.state.context(head.thread);
            let advanced =
                self.state.advance(generation, head.thread, &head.event).map_err(|what| {
                    let name = crate::spec(head.event.kind as u8).map_or("?", |spec| spec.name);
                    let Event { time, args, .. } = head.event;
                    broken(format!("{name}{args:?} at {time} on thread {}: {what}", head.thread))
                })?;
            if !advanced {
                refused.push(head);
                continue;
            }
            let (thread, event) = (head.thread, head.event);
            let after = self.state.context(thread);
            see(self, &Seen { thread, event, before, after });
            heads.extend(next(thread, head.batch, head.rest).map_err(&broken)?);
            heads.extend(refused.drain(..));
        }
        match refused.first() {
            None => Ok(()),
            Some(_) => Err(broken(self.state.tell_stuck(&refused))),
        }
    }

    /// The goroutines that there are, with their status.
    pub fn goroutines(&self) -> impl Iterator<Item = (u64, GoStatus)> {
        self.state.goroutines()
    }

    /// The processors that there are, with their status.
    pub fn processors(&self) -> impl Iterator<Item = (u64, ProcStatus)> {
        self.state.processors()
    }

    /// What threads have in hand, those that have anything.
    pub fn threads(&self) -> impl Iterator<Item = (u64, Context)> {
        self.state.threads()
    }

    /// The number of the collection that is going on.
    #[must_use]
    pub fn active_collection(&self) -> Option<u64> {
        self.state.active_collection()
    }

    /// The goroutines that have the world stopped.
    pub fn stoppers(&self) -> impl Iterator<Item = u64> {
        self.state.stoppers()
    }
}

fn next<'a>(
    thread: u64,
    mut batch: Batch<'a>,
    mut rest: std::vec::IntoIter<Batch<'a>>,
) -> Result<Option<Next<'a>>, String> {
    loop {
        match batch.next_event() {
            Some(Ok(event)) => return Ok(Some(Next { thread, event, rest, batch })),
            Some(Err(what)) => return Err(format!("thread {thread}: {what}")),
            None => match rest.next() {
                Some(other) => batch = other,
                None => return Ok(None),
            },
        }
    }
}

impl Ord for Next<'_> {
    /// The earliest is the greatest, as a heap wants it.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.event.time, other.thread).cmp(&(self.event.time, self.thread))
    }
}

impl PartialOrd for Next<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Next<'_> {}

#[cfg(test)]
mod tests;
