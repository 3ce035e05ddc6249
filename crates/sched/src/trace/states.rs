//! What everything is when a trace begins.
//!
//! The world is stopped then, but for plain threads, and machines without a processor.
//!
//! * The first one to record has everything stated as it is, and noted.
//! * Who joins when another records already gets a file of its own from the next generation on. What was
//!   said last of everything is stated in it alone, before its first event: for the other one nothing is
//!   new. So nothing is noted either, and whoever comes next states it once more for both.

use super::chunk::{self, Owned};
use super::lane::{Lane, Section};
use super::sites::{know_root, root};
use super::{
    COLLECTION_SHOWN, FIRST, GENERATION, MUST_TELL_PROCS, Word, enter, thread_of, word_of, words,
};
use crate::attention::TRACE;
use crate::machine::Machine;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::slab;
use gosched_protocol::Status;
use gosched_trace_format::{GoStatus, Kind, NO_THREAD, ProcStatus};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Where everything is stated at the beginning.
pub(super) static STATES: Lane = Lane::new();

/// The world is stopped, but for plain threads, and machines without a processor: goroutines that
/// they wake meanwhile are made up for later, and calls that end meanwhile are seen under `calls`.
pub(super) fn state_all(own: Option<&'static Processor>, number: u32) {
    // ORDERING: Relaxed for this and the next ones; machines see them when they get a processor, which
    // synchronises.
    FIRST.store(number, Relaxed);
    MUST_TELL_PROCS.store(true, Relaxed);
    COLLECTION_SHOWN.store(0, Relaxed);
    for p in SCHEDULER.all_processors() {
        p.attention.fetch_or(TRACE, Relaxed);
    }
    // ORDERING: SeqCst; there was none before.
    GENERATION.store(number, SeqCst);
    let Some(mut section) = STATES.enter(NO_THREAD) else { return };
    for p in SCHEDULER.processors().filter(|p| own.is_none_or(|own| own.id != p.id)) {
        section.put(Kind::ProcStatus, &[p.id.into(), ProcStatus::Idle as u64]);
        note(number, ProcStatus::Idle as u64).write(&p.traced);
    }
    let own = own.and_then(Processor::machine);
    for id in 0..SCHEDULER.machine_count() {
        let Some(machine) = SCHEDULER.machine(id) else { continue };
        if own.is_none_or(|own| own.id != id) {
            state_call(&mut section, machine, number);
        }
    }
    slab::for_each(|g| {
        let status = match g.status.get() {
            Status::Runnable => GoStatus::Runnable as u64,
            Status::Waiting => GoStatus::Waiting as u64,
            _ => return,
        };
        if !Word::read(word_of(g)).is_known() {
            let stack = know_root(g).stack(words::FUNCTION);
            section.put(Kind::GoStatusStack, &[g.id(), NO_THREAD, status, stack]);
            note(number, status).write(word_of(g));
        }
    });
    drop(section);
    if let Some(machine) = own {
        state_own(machine, number);
    }
}

fn note(number: u32, status: u64) -> Word {
    Word::new(number.into(), status)
}

/// A machine other than the caller's runs a goroutine: without a processor, so in a call.
fn state_call(section: &mut Section<'_>, machine: &Machine, number: u32) {
    let _alone = machine.lane.calls.lock();
    machine.lane.set_in_call(false);
    let Some(g) = machine.current() else { return };
    if !matches!(g.status.get(), Status::Running | Status::Syscall) {
        return;
    }
    machine.lane.set_in_call(true);
    let status = GoStatus::Syscall as u64;
    let stack = know_root(g).stack(words::UNDECLARED);
    section.put(Kind::GoStatusStack, &[g.id(), thread_of(machine), status, stack]);
    note(number, status).write(word_of(g));
}

fn state_own(machine: &'static Machine, number: u32) {
    machine.lane.set_in_call(false);
    let (Some(p), Some(g)) = (machine.processor(), machine.current()) else { return };
    let Some(mut section) = enter(machine) else { return };
    let (running, goes) = (ProcStatus::Running as u64, GoStatus::Running as u64);
    section.put(Kind::ProcStatus, &[p.id.into(), running]);
    note(number, running).write(&p.traced);
    let stack = know_root(g).stack(words::FUNCTION);
    section.put(Kind::GoStatusStack, &[g.id(), thread_of(machine), goes, stack]);
    note(number, goes).write(word_of(g));
}

// ---------------------------------------------------------------------------- joining

/// Where everything is stated for who joins.
static JOINING: Lane = Lane::apart();

/// For who joins in this generation, which has begun at `begun`. The world is stopped as for
/// [`state_all`], by a plain thread.
///
/// What is not in the generation yet has not changed since the one before: whoever changes it from now
/// on states it first. All of this is at a time before such a statement.
pub(super) fn state_joined(begun: u64) {
    let Some(mut section) = JOINING.enter(NO_THREAD) else { return };
    section.now = begun;
    // ORDERING: Relaxed for both; who runs next has stopped before.
    MUST_TELL_PROCS.store(true, Relaxed);
    let collection = COLLECTION_SHOWN.load(Relaxed);
    if collection != 0 {
        section.put(Kind::GCActive, &[collection]);
    }
    for p in SCHEDULER.all_processors() {
        if let Some(word) = section.former(Word::read(&p.traced)) {
            section.put(Kind::ProcStatus, &[p.id.into(), word.status()]);
        }
    }
    for id in 0..SCHEDULER.machine_count() {
        let Some(machine) = SCHEDULER.machine(id) else { continue };
        let _alone = machine.lane.calls.lock();
        let Some(g) = machine.current() else { continue };
        let word = section.former(Word::read(word_of(g)));
        if word.is_some_and(|word| word.status() == GoStatus::Syscall as u64) {
            let (thread, stack) = (thread_of(machine), root(g).stack(words::CALL));
            let status = GoStatus::Syscall as u64;
            section.put(Kind::GoStatusStack, &[g.id(), thread, status, stack]);
        }
    }
    slab::for_each(|g| {
        let id = g.id();
        let Some(word) = section.former(Word::read(word_of(g))) else { return };
        let rests = [GoStatus::Runnable as u64, GoStatus::Waiting as u64].contains(&word.status());
        if rests && g.id() == id {
            let stack = root(g).stack(words::FUNCTION);
            section.put(Kind::GoStatusStack, &[id, NO_THREAD, word.status(), stack]);
        }
    });
    drop(section);
    JOINING.flush(u64::MAX);
}

impl Section<'_> {
    /// What was said before this generation; `None` if something was said in it, or never.
    fn former(&self, word: Word) -> Option<Word> {
        (word.is_known() && word.generation() < self.generation).then_some(word)
    }
}

/// What was written by [`state_joined`].
pub(super) fn joined() -> impl Iterator<Item = Owned> {
    std::iter::from_fn(chunk::take_apart)
}
