//! A trace from its beginning to its end, and the thread that collects it.
//!
//! It begins with the world stopped: every processor and goroutine is stated as it is then. From then
//! on a plain thread ends a generation each second, or when there is much, and hands it to a [`Sink`];
//! it needs nothing of the scheduler for that. It ends without stopping anything: events are cut off at
//! one moment, in the sense that what comes after a missing one is missing too.

use super::chunk::{self, Owned};
use super::clock::{self, Speed};
use super::lane::{self, Lane, Section};
use super::sites::{self, Who, stack};
use super::{
    COLLECTOR, FIRST, GENERATION, HAS_OVERRUN, MUST_TELL_PROCS, Word, enter, thread_of, word_of,
    words,
};
use crate::attention::TRACE;
use crate::machine::Machine;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::{blocking, slab, start as runtime, world};
use gosched_base::{barrier, os};
use gosched_protocol::Status;
use gosched_trace_format::{
    GoStatus, HEADER, Kind, NO_THREAD, ProcStatus, Table, batch_header, frequency_batch,
};
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a generation is, unless a test says otherwise. Go's.
const PERIOD: Duration = Duration::from_secs(1);

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
            TraceError::AlreadyOn => f.write_str("a trace is being recorded already"),
            TraceError::NoThread(error) => write!(f, "no thread to collect a trace: {error}"),
        }
    }
}

impl std::error::Error for TraceError {}

/// A generation that has ended.
pub(super) struct Closed {
    pub(super) number: u64,
    /// A time before all of its events, in ticks.
    pub(super) begun: u64,
    /// When that was, in nanoseconds of the monotonic clock.
    pub(super) begun_ns: u64,
    pub(super) bytes: Vec<u8>,
}

/// Where generations go. Called on the collector's thread.
pub(super) trait Sink: Send {
    fn take(&mut self, closed: Closed) -> io::Result<()>;
    /// A whole file of what is kept.
    fn file(&mut self) -> io::Result<Vec<u8>>;
}

/// What the collector is asked for.
pub(super) enum Ask {
    File(Sender<io::Result<Vec<u8>>>),
    End,
}

/// A trace that is on.
struct Recording {
    thread: JoinHandle<io::Result<()>>,
    asks: Sender<Ask>,
}

static CURRENT: Mutex<Option<Recording>> = Mutex::new(None);

fn current() -> MutexGuard<'static, Option<Recording>> {
    CURRENT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Begins a trace into `writer`; Go's `trace.Start`. See the facade.
///
/// # Errors
/// If one is on, or the system refuses a thread.
pub fn start(writer: impl Write + Send + 'static) -> Result<(), TraceError> {
    begin(Box::new(ToWriter { writer, is_begun: false }))
}

/// Ends it and returns when all was written; Go's `trace.Stop`. Nothing if none is on.
///
/// # Errors
/// What the writer returned. [`io::ErrorKind::OutOfMemory`]: it was so slow that 256 MiB were waiting;
/// what was written before then is a whole trace.
pub fn stop() -> io::Result<()> {
    end()
}

struct ToWriter<W> {
    writer: W,
    is_begun: bool,
}

impl<W: Write + Send> Sink for ToWriter<W> {
    fn take(&mut self, closed: Closed) -> io::Result<()> {
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

pub(super) fn begin(sink: Box<dyn Sink>) -> Result<(), TraceError> {
    runtime::ensure_started();
    let mut current = current();
    if current.is_some() {
        return Err(TraceError::AlreadyOn);
    }
    // ORDERING: Relaxed for both; no trace is on, and this thread begins the next one.
    HAS_OVERRUN.store(false, Relaxed);
    let number = FIRST.load(Relaxed).max(LAST.load(Relaxed)) + 1;
    clock::choose();
    let beginning = Beginning::now();
    world::stop_to_trace(|own| state_all(own, number));
    let (asks, asked) = mpsc::channel();
    let collect = move || Collector::new(number, beginning).run(sink, &asked);
    match std::thread::Builder::new().name("gosched-trace".into()).spawn(collect) {
        Ok(thread) => {
            *current = Some(Recording { thread, asks });
            Ok(())
        }
        Err(error) => {
            let mut collector = Collector::new(number, Beginning::now());
            collector.close(true);
            unmark_processors();
            Err(TraceError::NoThread(error))
        }
    }
}

pub(super) fn end() -> io::Result<()> {
    let mut current = current();
    let Some(Recording { thread, asks }) = current.take() else { return Ok(()) };
    let _ = asks.send(Ask::End);
    COLLECTOR.wake();
    let result = blocking(|| thread.join());
    unmark_processors();
    result.unwrap_or_else(|_| Err(io::Error::other("the trace's writer panicked")))
}

/// A whole file of what the sink keeps, with all that has happened so far.
pub(super) fn file() -> io::Result<Vec<u8>> {
    let (reply, file) = mpsc::channel();
    let asked = current().as_ref().is_some_and(|on| on.asks.send(Ask::File(reply)).is_ok());
    if !asked {
        return Err(io::Error::other("the recorder is not on"));
    }
    COLLECTOR.wake();
    blocking(|| file.recv()).unwrap_or_else(|_| Err(io::Error::other("the recorder has ended")))
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

// -------------------------------------------------------------------------- beginning

/// Where everything is stated at the beginning.
static STATES: Lane = Lane::new();

/// The world is stopped, but for plain threads, and machines without a processor: goroutines that
/// they wake meanwhile are made up for later, and calls that end meanwhile are seen under `calls`.
fn state_all(own: Option<&'static Processor>, number: u32) {
    // ORDERING: Relaxed for this and the next ones; machines see them when they get a processor, which
    // synchronises.
    FIRST.store(number, Relaxed);
    MUST_TELL_PROCS.store(true, Relaxed);
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
            let stack = stack(words::FUNCTION, Who::of(g));
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
    Word { generation: number.into(), status, seq: 0 }
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
    let stack = stack(words::UNDECLARED, Who::of(g));
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
    let stack = stack(words::FUNCTION, Who::of(g));
    section.put(Kind::GoStatusStack, &[g.id(), thread_of(machine), goes, stack]);
    note(number, goes).write(word_of(g));
}

// -------------------------------------------------------------------------- collecting

/// The last generation of the last trace.
static LAST: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// A time before all events of a generation.
#[derive(Clone, Copy)]
struct Beginning {
    ticks: u64,
    ns: u64,
}

impl Beginning {
    fn now() -> Beginning {
        Beginning { ticks: clock::now(), ns: os::monotonic_ns() }
    }
}

struct Collector {
    number: u32,
    begun: Beginning,
    next_begun: Beginning,
    /// Chunks of the next generation.
    later: Vec<Owned>,
    speed: Speed,
}

impl Collector {
    fn new(number: u32, begun: Beginning) -> Collector {
        Collector { number, begun, next_begun: begun, later: Vec::new(), speed: Speed::new() }
    }

    fn run(mut self, mut sink: Box<dyn Sink>, asked: &Receiver<Ask>) -> io::Result<()> {
        runtime::block_signals();
        SCHEDULER.machine_started();
        let result = self.collect(&mut *sink, asked);
        if result.is_err() {
            self.close(true);
        }
        chunk::give_back();
        SCHEDULER.machine_ended();
        result
    }

    fn collect(&mut self, sink: &mut dyn Sink, asked: &Receiver<Ask>) -> io::Result<()> {
        let period = SCHEDULER.settled.get().map_or(PERIOD, |settled| settled.trace_period);
        loop {
            COLLECTOR.sleep_for(period);
            let asks: Vec<Ask> = asked.try_iter().collect();
            let is_asked_to_end = asks.iter().any(|ask| matches!(ask, Ask::End));
            let is_last = !self.advance(is_asked_to_end);
            let closed = self.gather();
            self.number += u32::from(!is_last);
            sink.take(closed)?;
            for ask in asks {
                if let Ask::File(reply) = ask {
                    let _ = reply.send(sink.file());
                }
            }
            // ORDERING: Relaxed; set before the generation was.
            if is_last && HAS_OVERRUN.load(Relaxed) {
                return Err(io::Error::from(io::ErrorKind::OutOfMemory));
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Ends the generation and begins the next one; false: there is none.
    fn advance(&mut self, is_last: bool) -> bool {
        let next = if is_last { 0 } else { self.number + 1 };
        self.next_begun = Beginning::now();
        // ORDERING: Relaxed; only one trace at a time.
        LAST.store(self.number, Relaxed);
        // ORDERING: C1 of `lane`. Failing, somebody has ended it.
        GENERATION.compare_exchange(self.number, next, SeqCst, SeqCst) == Ok(self.number)
            && !is_last
    }

    /// Everything of the generation that was ended.
    fn gather(&mut self) -> Closed {
        // C2; where it is refused the writers have fences.
        let _ = barrier::heavy();
        let number = u64::from(self.number);
        let Beginning { ticks: begun, ns: begun_ns } = self.begun;
        self.begun = self.next_begun;
        for lane in all_lanes() {
            lane.wait_for_writer();
            lane.flush(number + 1);
        }
        let mut bytes = Vec::new();
        frequency_batch(&mut bytes, number, begun, self.speed.ticks_per_second());
        let mut later = Vec::new();
        let waiting = std::mem::take(&mut self.later);
        for mut chunk in waiting.into_iter().chain(std::iter::from_fn(chunk::take_full)) {
            let head = chunk.get();
            let (of, thread, base) = (head.generation, head.thread, head.base);
            if of > number {
                later.push(chunk);
                continue;
            }
            if of == number && !chunk.payload().is_empty() {
                batch_header(&mut bytes, number, thread, base, chunk.payload().len());
                bytes.extend_from_slice(chunk.payload());
            }
            chunk::give(chunk);
        }
        self.later = later;
        let mut table = Table::new();
        words::enter_all(&mut table);
        sites::enter_all(&mut table);
        table.write(&mut bytes, number, begun);
        Closed { number, begun, begun_ns, bytes }
    }

    /// Ends the trace without a reader.
    fn close(&mut self, is_last: bool) {
        self.advance(is_last);
        drop(self.gather());
    }
}

fn all_lanes() -> impl Iterator<Item = &'static Lane> {
    let machines = (0..SCHEDULER.machine_count()).filter_map(|id| SCHEDULER.machine(id));
    machines.map(|machine| &machine.lane).chain(lane::all_outside()).chain([&STATES])
}
