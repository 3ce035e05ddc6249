//! A repetition of a cell with an execution trace, and what the trace says.

use crate::record::Measured;
use crate::{probe, task};
use gosched_trace_format::{Doing, Event, Kind, Range, Seen, Timeline, Watch, Who, spec, verify};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What the trace of one repetition says. Times are in ns since the first of the many goroutines
/// was created, which is a little after the trace began.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Traced {
    /// The name of the variant.
    pub variant: String,
    /// GOMAXPROCS.
    pub procs: usize,
    /// The trace, in the folder of the report.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// From the start of the repetition until its last goroutine was joined.
    pub elapsed_ns: u64,
    /// CPU time of the process meanwhile.
    pub cpu_ns: u64,
    /// From its first event to its last.
    pub span_ns: u64,
    /// Its generations.
    pub generations: usize,
    /// All its events.
    pub events: u64,
    /// The most processors that ran at a time.
    pub most_running: usize,
    /// The many goroutines that are in it.
    pub goroutines: usize,
    /// What each processor did; first what happened on none.
    pub processors: Vec<ProcessorEvents>,
    /// When the world was stopped.
    pub stops: Vec<Span>,
    /// When a collection was going on.
    pub collections: Vec<Span>,
    /// What GOMAXPROCS was set to, and when.
    pub procs_changes: Vec<(i64, u64)>,
    /// Why goroutines gave up a processor that could have gone on, and how often.
    pub given_up: BTreeMap<String, u64>,
    /// Sleeps of the probe that ended after the start.
    pub sleeps: Vec<TracedSleep>,
    /// Who ran where, for the drawing.
    #[serde(skip)]
    pub(crate) runs: Vec<Stretch>,
}

/// The events of one processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProcessorEvents {
    /// Which; none for events of threads that had none.
    pub p: Option<u64>,
    /// How long goroutines ran on it.
    pub busy_ns: u64,
    /// How long a machine had it.
    pub held_ns: u64,
    /// By Go's names.
    pub events: BTreeMap<&'static str, u64>,
}

/// Something that lasted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// What it is called in the trace.
    pub what: String,
    /// When it began.
    pub from_ns: i64,
    /// How long it took.
    pub took_ns: u64,
}

/// One sleep of the probe as the trace has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TracedSleep {
    /// When it fell asleep.
    pub from_ns: i64,
    /// When it was made runnable.
    pub ready_ns: i64,
    /// When it ran.
    pub ran_ns: i64,
}

impl TracedSleep {
    /// How much later than asked it ran.
    pub(crate) fn late_ns(&self) -> u64 {
        let period = probe::PERIOD.as_nanos() as i64;
        (self.ran_ns - self.from_ns - period).max(0) as u64
    }

    /// How much later than asked it was made runnable.
    pub(crate) fn ready_late_ns(&self) -> u64 {
        let period = probe::PERIOD.as_nanos() as i64;
        (self.ready_ns - self.from_ns - period).max(0) as u64
    }
}

/// Whose time a stretch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// One of the many, by its number.
    Many(u64),
    Probe,
    Other,
}

impl Role {
    fn of(who: Who<'_>) -> Role {
        match who.name {
            name if task::is_one_of_many(name) => Role::Many(who.id),
            name if probe::is_probe(name) => Role::Probe,
            _ => Role::Other,
        }
    }
}

/// A goroutine on a processor without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) p: u64,
    pub(crate) role: Role,
    pub(crate) from_ns: i64,
    pub(crate) to_ns: i64,
}

impl ProcessorEvents {
    /// How many events of the kind that Go calls so.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        self.events.get(name).copied().unwrap_or(0)
    }

    /// All its events.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.events.values().sum()
    }
}

impl Traced {
    /// Reads `file` in `folder`, which the process of `measured` wrote, and checks it.
    ///
    /// # Errors
    /// A sentence: it can't be read, or what is in it can't have happened.
    pub(crate) fn read(measured: &Measured, folder: &Path, file: &str) -> Result<Traced, String> {
        let bytes = fs::read(folder.join(file)).map_err(|error| format!("no trace: {error}"))?;
        let told = Traced::of(&bytes).map_err(|fault| format!("the trace is wrong: {fault}"))?;
        if told.goroutines != measured.cell.goroutines {
            let (seen, all) = (told.goroutines, measured.cell.goroutines);
            return Err(format!("{seen} of {all} goroutines are in the trace"));
        }
        Ok(Traced {
            variant: measured.cell.variant.clone(),
            procs: measured.cell.procs,
            file: file.to_owned(),
            elapsed_ns: measured.elapsed_ns,
            cpu_ns: measured.cpu_ns,
            ..told
        })
    }

    fn of(bytes: &[u8]) -> Result<Traced, String> {
        let (mut timeline, mut reader) = (Timeline::default(), Reader::default());
        let verified = verify(bytes, |generation, seen| {
            let words = |id| generation.string(id).unwrap_or_default();
            reader.count(seen, &words);
            timeline.see(generation, seen, &mut reader);
        })
        .map_err(|fault| fault.to_string())?;
        timeline.end(&mut reader);
        let told = reader.end();
        Ok(Traced {
            bytes: bytes.len() as u64,
            span_ns: verified.nanoseconds,
            generations: verified.generations,
            events: verified.events.values().sum(),
            most_running: verified.most_running,
            ..told
        })
    }

    /// How late the probe ran, in the order of its sleeps.
    pub(crate) fn late_ns(&self) -> impl Iterator<Item = u64> {
        self.sleeps.iter().map(TracedSleep::late_ns)
    }

    /// How late it was made runnable.
    pub(crate) fn ready_late_ns(&self) -> impl Iterator<Item = u64> {
        self.sleeps.iter().map(TracedSleep::ready_late_ns)
    }

    /// Events of a kind on all processors and outside.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.processors.iter().map(|processor| processor.count(name)).sum()
    }
}

/// Collects what is told; times are the trace's until the end.
#[derive(Default)]
struct Reader {
    told: Traced,
    processors: BTreeMap<Option<u64>, ProcessorEvents>,
    many: BTreeSet<u64>,
    /// When the first of the many appeared.
    start: Option<u64>,
    /// Of the probe: asleep since, and runnable since.
    asleep: Option<(u64, u64)>,
}

impl Reader {
    fn count<'a>(&mut self, seen: &Seen, words: &dyn Fn(u64) -> &'a str) {
        let Event { kind, args, .. } = seen.event;
        let p = match kind {
            Kind::ProcStart | Kind::ProcStatus | Kind::ProcSteal => Some(args[0]),
            _ => seen.before.p.or(seen.after.p),
        };
        let name = spec(kind as u8).map_or("?", |spec| spec.name);
        *self.of(p).events.entry(name).or_default() += 1;
        if kind == Kind::GoStop {
            *self.told.given_up.entry(words(args[0]).to_owned()).or_default() += 1;
        }
    }

    fn of(&mut self, p: Option<u64>) -> &mut ProcessorEvents {
        self.processors.entry(p).or_insert_with(|| ProcessorEvents { p, ..Default::default() })
    }

    fn end(self) -> Traced {
        let Reader { mut told, processors, many, start, .. } = self;
        let start = start.unwrap_or(0) as i64;
        told.goroutines = many.len();
        told.processors = processors.into_values().collect();
        let spans = told.stops.iter_mut().chain(&mut told.collections);
        spans.for_each(|span| span.from_ns -= start);
        told.procs_changes.iter_mut().for_each(|(at, _)| *at -= start);
        for sleep in &mut told.sleeps {
            let TracedSleep { from_ns, ready_ns, ran_ns } = sleep;
            [from_ns, ready_ns, ran_ns].into_iter().for_each(|at| *at -= start);
        }
        told.sleeps.retain(|sleep| sleep.ran_ns >= 0);
        for stretch in &mut told.runs {
            stretch.from_ns -= start;
            stretch.to_ns -= start;
        }
        told.runs.sort_unstable_by_key(|stretch| stretch.from_ns);
        told
    }
}

impl Watch for Reader {
    fn did(&mut self, who: Who<'_>, what: &Doing, from: u64, to: u64) {
        let role = Role::of(who);
        if let Role::Many(id) = role {
            self.many.insert(id);
            self.start = Some(self.start.map_or(from, |start| start.min(from)));
        }
        match what {
            Doing::Runs(p) => {
                self.of(Some(*p)).busy_ns += to - from;
                let (from_ns, to_ns) = (from as i64, to as i64);
                self.told.runs.push(Stretch { p: *p, role, from_ns, to_ns });
            }
            Doing::Waits(_) if role == Role::Probe => self.asleep = Some((from, to)),
            Doing::Runnable if role == Role::Probe => {
                if let Some((asleep, ready)) = self.asleep.take() {
                    let (from_ns, ready_ns) = (asleep as i64, ready as i64);
                    self.told.sleeps.push(TracedSleep { from_ns, ready_ns, ran_ns: to as i64 });
                }
            }
            Doing::Waits(_) | Doing::Runnable | Doing::Call => {}
        }
    }

    fn range(&mut self, range: &Range, from: u64, to: u64) {
        let (from_ns, took_ns) = (from as i64, to.saturating_sub(from));
        match range {
            Range::Processor(p) => self.of(Some(*p)).held_ns += took_ns,
            Range::Stopped(why) => {
                self.told.stops.push(Span { what: why.clone(), from_ns, took_ns });
            }
            Range::Collection => {
                let what = "collection".to_owned();
                self.told.collections.push(Span { what, from_ns, took_ns });
            }
            Range::Region { .. } => {}
        }
    }

    fn procs(&mut self, at: u64, procs: u64) {
        self.told.procs_changes.push((at as i64, procs));
    }
}

#[cfg(test)]
mod tests;
