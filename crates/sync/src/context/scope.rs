//! What is cancelled at once: a context with its own right to cancel, and those below that have none.
//!
//! Invariants
//! * I1. `ended` is written once, under the lock, and then the channel is closed and the waits are
//!   ended before the lock is free. So whoever sees one of them and asks for another finds it.
//! * I2. A child is in its parent's list until one of both has ended.
//!
//! No lock is held while another scope's is taken; those below are ended afterwards, from a list,
//! since a long chain would not fit on a stack.

use super::after::Function;
use super::{Cause, ContextError};
use crate::mutex::{Mutex, MutexGuard};
use crate::once_lock::OnceLock;
use gosched_channel::{Receiver, Sender, bounded};
use gosched_sched::{self as sched, Cancellation};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// See the module's page.
pub(super) struct Scope {
    cancellation: Cancellation,
    ended: OnceLock<Ended>,
    /// Made by: who first asks for it, under the lock.
    done: OnceLock<(Sender<()>, Receiver<()>)>,
    timer: OnceLock<sched::AfterFunc>,
    /// Where it is in its parent's list, until it ends.
    place: Mutex<Option<Place>>,
    children: Mutex<Children>,
}

/// How it has ended.
#[derive(Clone)]
pub(super) struct Ended {
    pub(super) error: ContextError,
    pub(super) cause: Option<Cause>,
}

/// A place in a scope's list.
pub(super) struct Place {
    scope: Arc<Scope>,
    index: usize,
}

/// Who is to be told when the scope ends.
#[derive(Clone)]
pub(super) enum Child {
    Scope(Arc<Scope>),
    Function(Arc<Function>),
}

#[derive(Default)]
struct Children {
    slots: Vec<Option<Child>>,
    free: Vec<usize>,
}

impl Scope {
    fn new() -> Scope {
        Scope {
            cancellation: Cancellation::new(),
            ended: OnceLock::new(),
            done: OnceLock::new(),
            timer: OnceLock::new(),
            place: Mutex::new(None),
            children: Mutex::new(Children::default()),
        }
    }

    /// One that ends with `parent` at the latest.
    pub(super) fn below(parent: Option<&Arc<Scope>>) -> Arc<Scope> {
        let scope = Arc::new(Scope::new());
        let Some(parent) = parent else { return scope };
        match Scope::enter(parent, Child::Scope(scope.clone())) {
            Ok(place) => {
                *scope.place() = Some(place);
                // It may have been ended in between, by its parent.
                if scope.ended.get().is_some() {
                    scope.leave_parent();
                }
            }
            Err(ended) => scope.end(ended),
        }
        scope
    }

    /// Adds a child; or says how the scope has ended.
    pub(super) fn enter(this: &Arc<Scope>, child: Child) -> Result<Place, Ended> {
        let mut children = this.lock();
        if let Some(ended) = this.ended.get() {
            return Err(ended.clone());
        }
        let index = match children.free.pop() {
            Some(index) => index,
            None => {
                children.slots.push(None);
                children.slots.len() - 1
            }
        };
        children.slots[index] = Some(child);
        Ok(Place { scope: this.clone(), index })
    }

    fn lock(&self) -> MutexGuard<'_, Children> {
        // Nothing panics under it.
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self) -> MutexGuard<'_, Option<Place>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Once ended. Its reference to the parent goes too: a long chain would not fit on a stack.
    fn leave_parent(&self) {
        let place = self.place().take();
        if let Some(place) = place {
            place.leave();
        }
    }

    pub(super) fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    pub(super) fn ended(&self) -> Option<&Ended> {
        let ended = self.ended.get()?;
        if !self.cancellation.is_cancelled() {
            // Being ended now; I1.
            drop(self.lock());
        }
        Some(ended)
    }

    pub(super) fn done(&self) -> &Receiver<()> {
        if let Some((_, done)) = self.done.get() {
            return done;
        }
        let _children = self.lock();
        let (sender, done) = self.done.get_or_init(|| bounded(0));
        if self.ended.get().is_some() {
            sender.close();
        }
        done
    }

    /// Ends it and all below.
    pub(super) fn end(&self, ended: Ended) {
        let mut below = self.end_alone(&ended);
        while let Some(child) = below.pop() {
            match child {
                Child::Scope(scope) => below.extend(scope.end_alone(&ended)),
                Child::Function(function) => function.start(),
            }
        }
    }

    /// Ends it; those below are the caller's to end.
    fn end_alone(&self, ended: &Ended) -> Vec<Child> {
        let mut children = self.lock();
        if self.ended.set(ended.clone()).is_err() {
            return Vec::new();
        }
        if let Some((sender, _)) = self.done.get() {
            sender.close();
        }
        self.cancellation.cancel();
        let below = std::mem::take(&mut children.slots);
        drop(children);
        if let Some(timer) = self.timer.get() {
            timer.stop();
        }
        self.leave_parent();
        below.into_iter().flatten().collect()
    }

    /// Ends it at `deadline`.
    pub(super) fn end_at(self: &Arc<Scope>, deadline: Instant, ended: Ended) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return self.end(ended);
        }
        let scope = Arc::downgrade(self);
        let timer = sched::after_func(left, move || {
            if let Some(scope) = scope.upgrade() {
                scope.end(ended.clone());
            }
        });
        // Nobody else writes it.
        let _first = self.timer.set(timer);
        if self.ended.get().is_some()
            && let Some(timer) = self.timer.get()
        {
            timer.stop();
        }
    }
}

impl Place {
    /// Takes the child out, if it is still there.
    pub(super) fn leave(&self) {
        let mut children = self.scope.lock();
        let left = children.slots.get_mut(self.index).and_then(Option::take);
        if left.is_some() {
            children.free.push(self.index);
        }
        drop(children);
        // Perhaps the last reference to it.
        drop(left);
    }
}
