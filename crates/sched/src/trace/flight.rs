//! The flight recorder: the last seconds of a trace that goes on for ever.
//!
//! It keeps whole generations. A file must begin with the states of everything, which a generation in
//! the middle does not have: so a generation that is dropped is read first, and what is known at its end
//! is stated before the first one that is kept.

use super::collector::{Closed, Role, Sink};
use super::session::{self, TraceError};
use gosched_base::os;
use gosched_trace_format::{
    Context, EVENT_MAX, GoStatus, HEADER, Kind, NO_THREAD, Order, ProcStatus, Trace, batch_header,
    encode,
};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Records the last seconds, to be written when something has happened. See the facade.
#[derive(Debug)]
pub struct FlightRecorder {
    min_age: Duration,
    max_bytes: usize,
    is_on: AtomicBool,
}

impl Default for FlightRecorder {
    fn default() -> FlightRecorder {
        FlightRecorder::new()
    }
}

impl FlightRecorder {
    /// One that keeps at least 10 s, and at most about 10 MiB. Go's defaults.
    #[must_use]
    pub fn new() -> FlightRecorder {
        let is_on = AtomicBool::new(false);
        FlightRecorder { min_age: Duration::from_secs(10), max_bytes: 10 << 20, is_on }
    }

    /// Keeps at least this much time, as far as the bytes allow.
    #[must_use]
    pub fn min_age(mut self, age: Duration) -> FlightRecorder {
        self.min_age = age;
        self
    }

    /// Keeps at most about so many bytes; never less than the last generation.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> FlightRecorder {
        self.max_bytes = bytes;
        self
    }

    /// Begins to record.
    ///
    /// # Errors
    /// If a recorder is on already, or the system refuses a thread.
    pub fn start(&self) -> Result<(), TraceError> {
        let min_age = u64::try_from(self.min_age.as_nanos()).unwrap_or(u64::MAX);
        let max_bytes = self.max_bytes;
        let kept = Kept {
            min_age,
            max_bytes,
            generations: VecDeque::new(),
            before: Order::new(),
            is_lost: false,
        };
        session::begin(Role::Recorder, Box::new(kept))?;
        // ORDERING: Relaxed; a flag for whoever asks.
        self.is_on.store(true, Relaxed);
        Ok(())
    }

    /// Ends it and forgets what was recorded. Nothing if it is not on.
    pub fn stop(&self) {
        // ORDERING: Relaxed; as in `start`.
        if self.is_on.swap(false, Relaxed) {
            let _ = session::end(Role::Recorder);
        }
    }

    /// Whether it records.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        // ORDERING: Relaxed; as in `start`.
        self.is_on.load(Relaxed)
    }

    /// Writes what it has recorded so far, a whole trace. It goes on recording.
    ///
    /// # Errors
    /// If it is not on, or what `writer` returns.
    pub fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
        if !self.is_enabled() {
            return Err(io::Error::other("the recorder is not on"));
        }
        writer.write_all(&session::file()?)?;
        writer.flush()
    }
}

impl Drop for FlightRecorder {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Kept {
    min_age: u64,
    max_bytes: usize,
    generations: VecDeque<Arc<Closed>>,
    /// What is known before the first of them.
    before: Order,
    /// It could not be followed: an error of ours.
    is_lost: bool,
}

impl Sink for Kept {
    fn take(&mut self, closed: Arc<Closed>) -> io::Result<()> {
        self.generations.push_back(closed);
        while self.has_too_much() {
            self.drop_first();
        }
        Ok(())
    }

    fn file(&mut self) -> io::Result<Vec<u8>> {
        if self.is_lost {
            return Err(io::Error::other("the trace could not be followed"));
        }
        let mut file = HEADER.to_vec();
        if let Some(first) = self.generations.front() {
            state_all(&mut file, &self.before, first);
        }
        self.generations.iter().for_each(|closed| file.extend_from_slice(&closed.bytes));
        Ok(file)
    }
}

impl Kept {
    fn has_too_much(&self) -> bool {
        let Some(second) = self.generations.get(1) else { return false };
        let bytes: usize = self.generations.iter().map(|closed| closed.bytes.len()).sum();
        let age = os::monotonic_ns().saturating_sub(second.begun_ns);
        bytes > self.max_bytes || age > self.min_age
    }

    fn drop_first(&mut self) {
        let Some(first) = self.generations.pop_front() else { return };
        let file = [&HEADER[..], &first.bytes].concat();
        let is_followed = Trace::read(&file).is_ok_and(|trace| {
            trace
                .generations
                .iter()
                .all(|generation| self.before.check(generation, |_, _| {}).is_ok())
        });
        self.is_lost |= !is_followed;
    }
}

/// What is known before the generation `first`, as its first events.
fn state_all(out: &mut Vec<u8>, before: &Order, first: &Closed) {
    let mut nobody = Events::new(out, first, NO_THREAD);
    for (p, status) in before.processors() {
        if matches!(status, ProcStatus::Idle | ProcStatus::Abandoned) {
            nobody.put(Kind::ProcStatus, &[p, status as u64]);
        }
    }
    for (g, status) in before.goroutines() {
        if matches!(status, GoStatus::Runnable | GoStatus::Waiting) {
            nobody.put(Kind::GoStatus, &[g, NO_THREAD, status as u64]);
        }
    }
    nobody.end();
    let mut collection = before.active_collection();
    for (thread, Context { p, g }) in before.threads() {
        let status_of = |g| before.goroutines().find(|(id, _)| *id == g).map(|(_, status)| status);
        let mut events = Events::new(out, first, thread);
        if let Some((p, status)) = before.processors().find(|(id, _)| Some(*id) == p) {
            events.put(Kind::ProcStatus, &[p, status as u64]);
        }
        let g = g.and_then(|g| Some((g, status_of(g)?)));
        if let Some((g, status)) = g {
            events.put(Kind::GoStatus, &[g, thread, status as u64]);
        }
        if let Some(seq) = collection.take() {
            events.put(Kind::GCActive, &[seq]);
        }
        if let Some((g, GoStatus::Running)) = g
            && before.stoppers().any(|stopper| stopper == g)
        {
            events.put(Kind::STWBegin, &[0, 0]);
        }
        events.end();
    }
}

/// A thread's events, all at the beginning of the generation.
struct Events<'a> {
    out: &'a mut Vec<u8>,
    first: &'a Closed,
    thread: u64,
    payload: Vec<u8>,
}

impl<'a> Events<'a> {
    fn new(out: &'a mut Vec<u8>, first: &'a Closed, thread: u64) -> Events<'a> {
        Events { out, first, thread, payload: Vec::new() }
    }

    fn put(&mut self, kind: Kind, args: &[u64]) {
        let mut bytes = [0; EVENT_MAX];
        if let Some(len) = encode(&mut bytes, kind, 0, args) {
            self.payload.extend_from_slice(&bytes[..len]);
        }
        if self.payload.len() > 60_000 {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.payload.is_empty() {
            let (number, begun) = (self.first.number, self.first.begun);
            batch_header(self.out, number, self.thread, begun, self.payload.len());
            self.out.append(&mut self.payload);
        }
    }

    fn end(mut self) {
        self.flush();
    }
}
