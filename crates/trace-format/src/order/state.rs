//! What is known of threads, processors and goroutines.

use super::Next;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// What a thread has in hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Its processor.
    pub p: Option<u64>,
    /// Its goroutine.
    pub g: Option<u64>,
}

/// What a goroutine does. The numbers are the format's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum GoStatus {
    /// It could run.
    Runnable = 1,
    /// It runs.
    Running = 2,
    /// It is in a system call.
    Syscall = 3,
    /// It waits.
    Waiting = 4,
}

/// What a processor does. The numbers are the format's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ProcStatus {
    /// A thread runs code with it.
    Running = 1,
    /// Nobody has it.
    Idle = 2,
    /// The thread that has it is in a system call.
    Syscall = 3,
    /// The same, and which thread that is was forgotten.
    Abandoned = 4,
}

impl GoStatus {
    pub(super) fn from_number(n: u64) -> Option<GoStatus> {
        use GoStatus::*;
        [Runnable, Running, Syscall, Waiting].into_iter().find(|status| *status as u64 == n)
    }
}

impl ProcStatus {
    pub(super) fn from_number(n: u64) -> Option<ProcStatus> {
        use ProcStatus::*;
        [Running, Idle, Syscall, Abandoned].into_iter().find(|status| *status as u64 == n)
    }
}

/// How often something changed hands in a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) generation: u64,
    pub(super) number: u64,
}

impl Turn {
    pub(super) fn follows(self, before: Turn) -> bool {
        self.generation == before.generation && self.number == before.number.wrapping_add(1)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Goroutine {
    pub(super) status: GoStatus,
    pub(super) turn: Turn,
}

#[derive(Clone, Debug)]
pub(super) struct Processor {
    pub(super) status: ProcStatus,
    pub(super) turn: Turn,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Collection {
    #[default]
    Unknown,
    Off,
    On,
}

/// Something with a beginning and an end, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Range {
    Stopped(u64),
    Sweep(u64),
    Assist(u64),
}

#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) generation: u64,
    /// Whether that is the first one.
    pub(super) is_first: bool,
    pub(super) threads: HashMap<u64, Context>,
    pub(super) goroutines: HashMap<u64, Goroutine>,
    pub(super) processors: HashMap<u64, Processor>,
    pub(super) collection: Collection,
    pub(super) collection_seq: u64,
    pub(super) ranges: HashSet<Range>,
    pub(super) tasks: HashSet<u64>,
    /// The open regions of goroutines: task and name.
    pub(super) regions: HashMap<u64, Vec<(u64, String)>>,
}

impl State {
    pub(super) fn begin(&mut self, generation: u64) {
        self.is_first = self.generation == 0;
        self.generation = generation;
    }

    pub(super) fn context(&self, thread: u64) -> Context {
        self.threads.get(&thread).copied().unwrap_or_default()
    }

    pub(super) fn first_turn(&self) -> Turn {
        Turn { generation: self.generation, number: 0 }
    }

    pub(super) fn turn(&self, number: u64) -> Turn {
        Turn { generation: self.generation, number }
    }

    pub(super) fn goroutines(&self) -> impl Iterator<Item = (u64, GoStatus)> {
        self.goroutines.iter().map(|(id, g)| (*id, g.status))
    }

    pub(super) fn processors(&self) -> impl Iterator<Item = (u64, ProcStatus)> {
        self.processors.iter().map(|(id, p)| (*id, p.status))
    }

    pub(super) fn threads(&self) -> impl Iterator<Item = (u64, Context)> {
        let busy = self.threads.iter().filter(|(_, context)| **context != Context::default());
        busy.map(|(id, context)| (*id, *context))
    }

    pub(super) fn active_collection(&self) -> Option<u64> {
        (self.collection == Collection::On).then_some(self.collection_seq)
    }

    pub(super) fn stoppers(&self) -> impl Iterator<Item = u64> {
        self.ranges.iter().filter_map(|range| match range {
            Range::Stopped(g) => Some(*g),
            _ => None,
        })
    }

    /// Why nothing can be next.
    pub(super) fn tell_stuck(&self, heads: &[Next<'_>]) -> String {
        let mut text = String::from("no event can be next:");
        for head in heads.iter().take(8) {
            let name = crate::spec(head.event.kind as u8).map_or("?", |spec| spec.name);
            let Context { p, g } = self.context(head.thread);
            let args = head.event.args;
            let subject = match head.event.kind {
                crate::Kind::ProcStart | crate::Kind::ProcSteal => {
                    format!("{:?}", self.processors.get(&args[0]))
                }
                _ => format!("{:?}", self.goroutines.get(&args[0])),
            };
            let _ = write!(
                text,
                " [{name}{args:?} at {} on thread {} with p {p:?}, g {g:?}; it is {subject}]",
                head.event.time, head.thread
            );
        }
        text
    }
}
