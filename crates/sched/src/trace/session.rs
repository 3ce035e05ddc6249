//! A trace from its beginning to its end.
//!
//! It begins with the world stopped: every processor and goroutine is stated as it is then. From then
//! on a thread collects it ([`collector`](super::collector)). It ends without stopping anything: events
//! are cut off at one moment, in the sense that what comes after a missing one is missing too.

use super::clock;
use super::collector::{Ask, Beginning, Closed, Collector, Failed, LAST, Offer, Role, Sink};
use super::states::state_all;
use super::{COLLECTOR, FIRST, HAS_OVERRUN};
use crate::attention::TRACE;
use crate::scheduler::SCHEDULER;
use crate::{blocking, start as runtime, world};
use gosched_trace_format::HEADER;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Why no trace was begun.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// There is one already.
    AlreadyOn,
    /// The system refuses the thread that collects it.
    NoThread(io::Error),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::AlreadyOn => f.write_str("there is one already"),
            TraceError::NoThread(error) => write!(f, "no thread to collect a trace: {error}"),
        }
    }
}

impl std::error::Error for TraceError {}

/// The thread that collects.
struct Recording {
    thread: JoinHandle<Failed>,
    asks: Sender<Ask>,
}

/// What is recorded, for whom.
struct State {
    recording: Option<Recording>,
    /// Those who have begun and not ended.
    roles: Vec<Role>,
    /// Why it failed for them.
    failed: Failed,
}

static CURRENT: Mutex<State> =
    Mutex::new(State { recording: None, roles: Vec::new(), failed: Vec::new() });

fn current() -> MutexGuard<'static, State> {
    CURRENT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Begins a trace into `writer`; Go's `trace.Start`. See the facade.
///
/// # Errors
/// If one is on, or the system refuses a thread.
pub fn start(writer: impl Write + Send + 'static) -> Result<(), TraceError> {
    begin(Role::Trace, Box::new(ToWriter { writer, is_begun: false }))
}

/// Ends it and returns when all was written; Go's `trace.Stop`. Nothing if none is on.
///
/// # Errors
/// What the writer returned. [`io::ErrorKind::OutOfMemory`]: it was so slow that 256 MiB were waiting;
/// what was written before then is a whole trace.
pub fn stop() -> io::Result<()> {
    end(Role::Trace)
}

struct ToWriter<W> {
    writer: W,
    is_begun: bool,
}

impl<W: Write + Send> Sink for ToWriter<W> {
    fn take(&mut self, closed: Arc<Closed>) -> io::Result<()> {
        if !self.is_begun {
            self.writer.write_all(HEADER)?;
            self.is_begun = true;
        }
        self.writer.write_all(&closed.bytes)?;
        self.writer.flush()
    }

    fn file(&mut self) -> io::Result<Vec<u8>> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}

pub(super) fn begin(role: Role, sink: Box<dyn Sink>) -> Result<(), TraceError> {
    runtime::ensure_started();
    let mut current = current();
    if current.roles.contains(&role) {
        return Err(TraceError::AlreadyOn);
    }
    let offer: Offer = Arc::new(Mutex::new(Some(sink)));
    if current.ask(|reply| Ask::Join(role, offer.clone(), reply)).is_none() {
        // Nobody records, or not any more.
        current.reap();
        let sink = offer.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        // Taken and then given up: the end of the other one came between.
        let Some(sink) = sink else { return Err(TraceError::NoThread(gone())) };
        current.recording = Some(record(role, sink)?);
    }
    current.roles.push(role);
    Ok(())
}

pub(super) fn end(role: Role) -> io::Result<()> {
    let mut current = current();
    let Some(at) = current.roles.iter().position(|other| *other == role) else { return Ok(()) };
    current.roles.remove(at);
    let told = current.ask(|reply| Ask::Leave(role, reply));
    if told.is_none() || current.roles.is_empty() {
        current.reap();
    }
    let failed = current.failed.iter().position(|(of, _)| *of == role);
    let failed = failed.map(|at| current.failed.swap_remove(at).1);
    told.unwrap_or_else(|| failed.map_or(Ok(()), Err))
}

/// A whole file of what the recorder keeps, with all that has happened so far.
pub(super) fn file() -> io::Result<Vec<u8>> {
    let asked = {
        let current = current();
        let is_on = current.roles.contains(&Role::Recorder);
        is_on.then(|| current.ask_for(Ask::File)).flatten()
    };
    let file = asked.and_then(|file| blocking(|| file.recv()).ok());
    file.unwrap_or_else(|| Err(gone()))
}

fn gone() -> io::Error {
    io::Error::other("the recorder is not on")
}

impl State {
    /// Asks the collector for something; where its reply comes. `None`: there is no collector.
    fn ask_for<R>(&self, ask: impl FnOnce(Sender<R>) -> Ask) -> Option<mpsc::Receiver<R>> {
        let (reply, replies) = mpsc::channel();
        self.recording.as_ref()?.asks.send(ask(reply)).ok()?;
        COLLECTOR.wake();
        Some(replies)
    }

    /// As above, with the reply. `None`, too, if it has ended before.
    fn ask<R: Send>(&self, ask: impl FnOnce(Sender<R>) -> Ask) -> Option<R> {
        let replies = self.ask_for(ask)?;
        blocking(|| replies.recv()).ok()
    }

    /// Waits for the end of the collector, which has nothing to do any more.
    fn reap(&mut self) {
        let Some(Recording { thread, asks }) = self.recording.take() else { return };
        drop(asks);
        let result = blocking(|| thread.join());
        unmark_processors();
        self.failed = result.unwrap_or_else(|_| {
            let panicked = || io::Error::other("the trace's writer panicked");
            [Role::Trace, Role::Recorder].map(|role| (role, panicked())).into()
        });
    }
}

/// Begins to record for the first one.
fn record(role: Role, sink: Box<dyn Sink>) -> Result<Recording, TraceError> {
    // ORDERING: Relaxed for both; no trace is on, and this thread begins the next one.
    HAS_OVERRUN.store(false, Relaxed);
    let number = FIRST.load(Relaxed).max(LAST.load(Relaxed)) + 1;
    clock::choose();
    #[cfg(feature = "frames")]
    super::samples::clear();
    let beginning = Beginning::now();
    world::stop_to_trace(|own| state_all(own, number));
    let (asks, asked) = mpsc::channel();
    let collect = move || Collector::new(number, beginning).run(role, sink, &asked);
    match std::thread::Builder::new().name("gosched-trace".into()).spawn(collect) {
        Ok(thread) => Ok(Recording { thread, asks }),
        Err(error) => {
            Collector::new(number, Beginning::now()).close();
            unmark_processors();
            Err(TraceError::NoThread(error))
        }
    }
}

fn unmark_processors() {
    for p in SCHEDULER.all_processors() {
        // ORDERING: Relaxed; the bit says to look at the generation, which is 0.
        p.attention.fetch_and(!TRACE, Relaxed);
    }
}

/// Processors were made, and are in nobody's hands yet. By who has the turn to stop the world.
pub(crate) fn mark_new_processors() {
    if super::is_on() {
        for p in SCHEDULER.all_processors() {
            // ORDERING: Relaxed; published with the processor.
            p.attention.fetch_or(TRACE, Relaxed);
        }
    }
}
