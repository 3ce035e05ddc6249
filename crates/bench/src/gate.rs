//! One event for many tasks that wait.

use crate::args::{Args, UsageError};
use crate::tasks::join;
use gosched::channel::{Receiver, Sender, bounded};
use gosched::thread::{JoinHandle, park};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// How tasks wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Via {
    /// In a channel that gets closed, as the peers in Go and on threads do.
    Channel,
    /// By `thread::park`; the event is an `unpark` for each.
    Park,
}

impl Via {
    pub(crate) fn asked(args: &Args) -> Result<Self, UsageError> {
        args.choice("via", &[("channel", Via::Channel), ("park", Via::Park)])
    }

    /// For the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Via::Channel => "closed channel",
            Via::Park => "park and unpark",
        }
    }

    /// A gate that is shut, and the view of it that tasks have.
    pub(crate) fn gate(self) -> (Gate, Waiter) {
        match self {
            Via::Channel => {
                let (sender, receiver) = bounded(0);
                (Gate::Channel(sender), Waiter::Channel(receiver))
            }
            Via::Park => {
                let open = Arc::new(AtomicBool::new(false));
                (Gate::Park(open.clone()), Waiter::Park(open))
            }
        }
    }
}

/// What opens.
pub(crate) enum Gate {
    Channel(Sender<()>),
    Park(Arc<AtomicBool>),
}

impl Gate {
    /// Lets the tasks go, and returns when all have ended.
    pub(crate) fn open(self, tasks: Vec<JoinHandle<()>>) {
        match self {
            Gate::Channel(sender) => drop(sender),
            Gate::Park(open) => {
                // ORDERING: pairs with `Waiter::wait`; there is nothing else to see.
                open.store(true, Release);
                tasks.iter().for_each(|task| task.thread().unpark());
            }
        }
        tasks.into_iter().for_each(join);
    }
}

/// What waits.
#[derive(Clone)]
pub(crate) enum Waiter {
    Channel(Receiver<()>),
    Park(Arc<AtomicBool>),
}

impl Waiter {
    /// Returns when the gate has been opened.
    pub(crate) fn wait(self) {
        match self {
            Waiter::Channel(receiver) => assert!(receiver.recv().is_err(), "nobody sends"),
            Waiter::Park(open) => {
                // ORDERING: pairs with `Gate::open`; there is nothing else to see.
                while !open.load(Acquire) {
                    park();
                }
            }
        }
    }
}
