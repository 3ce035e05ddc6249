//! The thread that collects a trace: it ends generations and hands them to those who record.
//!
//! A plain thread, which needs nothing of the scheduler. It ends a generation each second, when there is
//! much, or when somebody asks for something. Two can record at a time, a trace and a flight recorder:
//! both get the same generations, each from the one that began when it came to the one that ended when
//! it went.

use super::chunk::{self, Owned};
use super::clock::{self, Speed};
use super::lane::Lane;
use super::states::{self, STATES};
use super::{COLLECTOR, GENERATION, HAS_OVERRUN, outside, sites, words};
use crate::scheduler::SCHEDULER;
use crate::{start as runtime, world};
use gosched_base::{barrier, os};
use gosched_trace_format::{Table, batch_header, frequency_batch};
use std::io;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a generation is, unless a test says otherwise. Go's.
const PERIOD: Duration = Duration::from_secs(1);

/// The last generation of the last trace.
pub(super) static LAST: AtomicU32 = AtomicU32::new(0);

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
    fn take(&mut self, closed: Arc<Closed>) -> io::Result<()>;
    /// A whole file of what is kept.
    fn file(&mut self) -> io::Result<Vec<u8>>;
}

/// What a sink is for. One of each at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Trace,
    Recorder,
}

/// For something that is taken once.
pub(super) type Offer = Arc<Mutex<Option<Box<dyn Sink>>>>;

/// What the collector is asked for. A reply comes when it is done; none if it has ended before.
pub(super) enum Ask {
    /// A whole file of what the recorder keeps.
    File(Sender<io::Result<Vec<u8>>>),
    /// Record from now on.
    Join(Role, Offer, Sender<()>),
    /// Record until now.
    Leave(Role, Sender<io::Result<()>>),
}

/// A sink that failed gets nothing any more; who asks for its end is told.
struct Recorder {
    role: Role,
    sink: Box<dyn Sink>,
    failed: Option<io::Error>,
}

impl Recorder {
    fn take(&mut self, closed: &Arc<Closed>) {
        if self.failed.is_none() {
            self.failed = self.sink.take(closed.clone()).err();
        }
    }
}

/// A time before all events of a generation.
#[derive(Clone, Copy)]
pub(super) struct Beginning {
    ticks: u64,
    ns: u64,
}

impl Beginning {
    pub(super) fn now() -> Beginning {
        Beginning { ticks: clock::now() - 1, ns: os::monotonic_ns() }
    }
}

pub(super) struct Collector {
    number: u32,
    begun: Beginning,
    next_begun: Beginning,
    /// Chunks of the next generation.
    later: Vec<Owned>,
    speed: Speed,
    recorders: Vec<Recorder>,
    /// Those whose first generation has not ended.
    new: Vec<Recorder>,
    #[cfg(feature = "frames")]
    names: super::samples::Names,
}

/// What those who recorded last are told, if they ask for the end later.
pub(super) type Failed = Vec<(Role, io::Error)>;

impl Collector {
    pub(super) fn new(number: u32, begun: Beginning) -> Collector {
        Collector {
            number,
            begun,
            next_begun: begun,
            later: Vec::new(),
            speed: Speed::new(),
            recorders: Vec::new(),
            new: Vec::new(),
            #[cfg(feature = "frames")]
            names: super::samples::Names::default(),
        }
    }

    pub(super) fn run(mut self, role: Role, sink: Box<dyn Sink>, asked: &Receiver<Ask>) -> Failed {
        runtime::block_signals();
        SCHEDULER.machine_started();
        self.recorders.push(Recorder { role, sink, failed: None });
        self.collect(asked);
        chunk::give_back();
        SCHEDULER.machine_ended();
        let all = self.recorders.drain(..).chain(self.new.drain(..));
        all.filter_map(|Recorder { role, failed, .. }| failed.map(|error| (role, error))).collect()
    }

    fn collect(&mut self, asked: &Receiver<Ask>) {
        let period = SCHEDULER.settled.get().map_or(PERIOD, |settled| settled.trace_period);
        loop {
            COLLECTOR.sleep_for(period);
            let asks: Vec<Ask> = asked.try_iter().collect();
            let is_last = !self.advance_for(&asks);
            let joining = if is_last { Vec::new() } else { accept(&asks) };
            self.hand_out(!is_last);
            self.recorders.append(&mut self.new);
            self.new = joining;
            // ORDERING: Relaxed; set before the generation was.
            if is_last && HAS_OVERRUN.load(Relaxed) {
                for recorder in &mut self.recorders {
                    let error = || io::Error::from(io::ErrorKind::OutOfMemory);
                    recorder.failed.get_or_insert_with(error);
                }
            }
            asks.into_iter().for_each(|ask| self.answer(ask, is_last));
            if is_last {
                return;
            }
            let mut all = self.recorders.iter().chain(&self.new);
            if all.all(|recorder| recorder.failed.is_some()) {
                self.advance(true);
                drop(self.gather());
                return;
            }
        }
    }

    /// Ends the generation. False if it was the last one: nobody would record the next one, or there
    /// was no memory.
    fn advance_for(&mut self, asks: &[Ask]) -> bool {
        let leaves = |role| asks.iter().any(|ask| matches!(ask, Ask::Leave(of, _) if *of == role));
        let mut all = self.recorders.iter().chain(&self.new);
        let some_stay = all.any(|one| one.failed.is_none() && !leaves(one.role));
        if !asks.iter().any(|ask| matches!(ask, Ask::Join(..))) {
            return self.advance(!some_stay);
        }
        let mut goes_on = false;
        world::stop_to_trace(|_| {
            goes_on = self.advance(false);
            states::state_joined(self.next_begun.ticks);
        });
        goes_on
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

    /// Gives the generation that was ended to those who record.
    fn hand_out(&mut self, goes_on: bool) {
        // Those who joined in the generation that has ended have its beginning stated; this is before
        // others may do so in the next one.
        let (closed, joined) = self.gather();
        self.number += u32::from(goes_on);
        let closed = Arc::new(closed);
        self.recorders.iter_mut().for_each(|recorder| recorder.take(&closed));
        if !self.new.is_empty() {
            let Closed { number, begun, begun_ns, .. } = *closed;
            let bytes = [&joined[..], &closed.bytes].concat();
            let closed = Arc::new(Closed { number, begun, begun_ns, bytes });
            self.new.iter_mut().for_each(|recorder| recorder.take(&closed));
        }
    }

    /// Does what was asked for, after the generation has been handed out.
    fn answer(&mut self, ask: Ask, is_last: bool) {
        match ask {
            Ask::File(reply) => {
                let mut all = self.recorders.iter_mut();
                if let Some(recorder) = all.find(|recorder| recorder.role == Role::Recorder) {
                    let _ = reply.send(recorder.sink.file());
                }
            }
            Ask::Leave(role, reply) => {
                if let Some(at) = self.recorders.iter().position(|one| one.role == role) {
                    let left = self.recorders.remove(at);
                    let _ = reply.send(left.failed.map_or(Ok(()), Err));
                }
            }
            Ask::Join(_, _, reply) if !is_last => {
                let _ = reply.send(());
            }
            Ask::Join(..) => {}
        }
    }

    /// Everything of the generation that was ended, and what was stated for those who joined in it.
    fn gather(&mut self) -> (Closed, Vec<u8>) {
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
        let waiting = std::mem::take(&mut self.later);
        let full = waiting.into_iter().chain(std::iter::from_fn(chunk::take_full));
        self.later = write_chunks(&mut bytes, number, full);
        let mut joined = Vec::new();
        let later = write_chunks(&mut joined, number, states::joined());
        later.into_iter().for_each(chunk::put_apart);
        let mut table = Table::new();
        words::enter_all(&mut table);
        sites::enter_all(&mut table);
        #[cfg(feature = "frames")]
        {
            let time = (begun, self.next_begun.ticks);
            super::samples::write(&mut bytes, &mut table, &mut self.names, number, time);
        }
        table.write(&mut bytes, number, begun);
        (Closed { number, begun, begun_ns, bytes }, joined)
    }

    /// Ends the trace without a reader.
    pub(super) fn close(&mut self) {
        self.advance(true);
        drop(self.gather());
    }
}

/// Those who join, if they still want to.
fn accept(asks: &[Ask]) -> Vec<Recorder> {
    let offer = |ask: &Ask| match ask {
        Ask::Join(role, offer, _) => {
            let sink = offer.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()?;
            Some(Recorder { role: *role, sink, failed: None })
        }
        _ => None,
    };
    asks.iter().filter_map(offer).collect()
}

/// Writes the chunks of a generation; returns those of later ones.
fn write_chunks(
    bytes: &mut Vec<u8>,
    number: u64,
    chunks: impl Iterator<Item = Owned>,
) -> Vec<Owned> {
    let mut later = Vec::new();
    for mut chunk in chunks {
        let head = chunk.get();
        let (of, thread, base) = (head.generation, head.thread, head.base);
        if of > number {
            later.push(chunk);
            continue;
        }
        if of == number && !chunk.payload().is_empty() {
            batch_header(bytes, number, thread, base, chunk.payload().len());
            bytes.extend_from_slice(chunk.payload());
        }
        chunk::give(chunk);
    }
    later
}

fn all_lanes() -> impl Iterator<Item = &'static Lane> {
    let machines = (0..SCHEDULER.machine_count()).filter_map(|id| SCHEDULER.machine(id));
    machines.map(|machine| &machine.lane).chain(outside::all()).chain([&STATES])
}
