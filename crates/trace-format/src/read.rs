//! Reading: a file's generations, their batches, strings and stacks, and the events of a batch.

use crate::event::{Event, mark, spec};
use crate::sample::{CpuSample, read_sample};
use crate::varint::read_varint;
use crate::write::{HEADER, NO_THREAD, PAYLOAD_MAX, STRING_MAX};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A place in the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Its address, or a number that stands for it.
    pub pc: u64,
    /// The function.
    pub function: String,
    /// The file.
    pub file: String,
    /// The line; 0 if it is not known.
    pub line: u64,
}

/// What a thread did in a row.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    time: u64,
    payload: &'a [u8],
}

/// A part of a trace that stands for itself.
#[derive(Debug, Default)]
pub struct Generation<'a> {
    /// Its number, one more than that before.
    pub number: u64,
    /// Ticks a second.
    pub frequency: u64,
    /// By number.
    pub strings: HashMap<u64, &'a str>,
    /// By number, the innermost frame first.
    pub stacks: HashMap<u64, Vec<Frame>>,
    /// The batches of each thread, in order.
    pub threads: BTreeMap<u64, Vec<Batch<'a>>>,
    /// Samples of the CPU profiler, as they were written.
    pub samples: Vec<CpuSample>,
}

/// A file's generations.
#[derive(Debug)]
pub struct Trace<'a> {
    /// In order.
    pub generations: Vec<Generation<'a>>,
}

/// Why a file is no trace, or is cut, and where in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The byte from the start of the file at which it was seen.
    pub at: usize,
    /// What.
    pub what: String,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.at, self.what)
    }
}

impl std::error::Error for Damaged {}

impl<'a> Trace<'a> {
    /// Reads a whole file.
    ///
    /// # Errors
    /// If it is none, is damaged, or of another version of the format.
    pub fn read(file: &'a [u8]) -> Result<Trace<'a>, Damaged> {
        let mut reader = Reader { whole: file, rest: file };
        if !file.starts_with(HEADER) {
            return Err(reader.damaged("it does not begin with \"go 1.23 trace\""));
        }
        reader.rest = &file[HEADER.len()..];
        let mut generations: Vec<Generation<'a>> = Vec::new();
        while !reader.rest.is_empty() {
            let (number, thread, batch) = reader.batch()?;
            let last = generations.last().map(|last| last.number);
            match last {
                None if number == 0 => return Err(reader.damaged("invalid generation number 0")),
                Some(last) if number == last => {}
                Some(last) if last.checked_add(1) != Some(number) => {
                    return Err(reader.damaged("generations out of order"));
                }
                _ => generations.push(Generation { number, ..Generation::default() }),
            }
            let Some(generation) = generations.last_mut() else { continue };
            reader.enter(generation, thread, batch)?;
        }
        for generation in &mut generations {
            generation.name_frames(&reader)?;
            if generation.frequency == 0 {
                return Err(reader.damaged("no frequency event found"));
            }
        }
        Ok(Trace { generations })
    }
}

struct Reader<'a> {
    whole: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn damaged(&self, what: impl Into<String>) -> Damaged {
        Damaged { at: self.whole.len() - self.rest.len(), what: what.into() }
    }

    fn number(&mut self) -> Result<u64, Damaged> {
        read_varint(&mut self.rest).ok_or_else(|| self.damaged("a number is cut or too large"))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Damaged> {
        let (head, tail) =
            self.rest.split_at_checked(len).ok_or_else(|| self.damaged("the file is cut"))?;
        self.rest = tail;
        Ok(head)
    }

    fn batch(&mut self) -> Result<(u64, u64, Batch<'a>), Damaged> {
        if self.take(1)? != [mark::BATCH] {
            return Err(self.damaged("a batch was expected"));
        }
        let (generation, thread, time) = (self.number()?, self.number()?, self.number()?);
        let size = self.number()?;
        if size > PAYLOAD_MAX as u64 {
            return Err(self.damaged("a batch of more than 64 KiB"));
        }
        let payload = self.take(size as usize)?;
        Ok((generation, thread, Batch { time, payload }))
    }

    fn enter(
        &self,
        generation: &mut Generation<'a>,
        thread: u64,
        batch: Batch<'a>,
    ) -> Result<(), Damaged> {
        let Some((first, mut rest)) = batch.payload.split_first() else { return Ok(()) };
        match *first {
            mark::STRINGS => {
                while !rest.is_empty() {
                    generation
                        .read_string(&mut rest)
                        .ok_or_else(|| self.damaged("a bad string"))?;
                }
            }
            mark::STACKS => {
                while !rest.is_empty() {
                    generation.read_stack(&mut rest).ok_or_else(|| self.damaged("a bad stack"))?;
                }
            }
            mark::CPU_SAMPLES => {
                while !rest.is_empty() {
                    let sample = read_sample(&mut rest);
                    let sample = sample.ok_or_else(|| self.damaged("a bad CPU sample"))?;
                    generation.samples.push(sample);
                }
            }
            mark::FREQUENCY => {
                let frequency = read_varint(&mut rest).filter(|n| *n > 0);
                if generation.frequency != 0 {
                    return Err(self.damaged("found multiple frequency events"));
                }
                generation.frequency = frequency.ok_or_else(|| self.damaged("a bad frequency"))?;
            }
            _ => generation.threads.entry(thread).or_default().push(batch),
        }
        Ok(())
    }
}

/// Frames before the names of their functions and files are known: the strings' numbers in decimal.
impl<'a> Generation<'a> {
    fn read_string(&mut self, rest: &mut &'a [u8]) -> Option<()> {
        take_mark(rest, mark::STRING)?;
        let (id, len) = (read_varint(rest)?, read_varint(rest)? as usize);
        let (text, tail) = rest.split_at_checked(len).filter(|_| len <= STRING_MAX)?;
        *rest = tail;
        let is_new = self.strings.insert(id, str::from_utf8(text).ok()?).is_none();
        (is_new && id != 0).then_some(())
    }

    fn read_stack(&mut self, rest: &mut &[u8]) -> Option<()> {
        take_mark(rest, mark::STACK)?;
        let (id, count) = (read_varint(rest)?, read_varint(rest)?);
        let frames = (0..count).map(|_| {
            let (pc, function, file) = (read_varint(rest)?, read_varint(rest)?, read_varint(rest)?);
            let line = read_varint(rest)?;
            let (function, file) = (function.to_string(), file.to_string());
            Some(Frame { pc, function, file, line })
        });
        let frames: Option<Vec<Frame>> = frames.take(128).collect();
        (self.stacks.insert(id, frames?).is_none() && id != 0 && count <= 128).then_some(())
    }

    fn name_frames(&mut self, reader: &Reader<'_>) -> Result<(), Damaged> {
        for frame in self.stacks.values_mut().flatten() {
            for text in [&mut frame.function, &mut frame.file] {
                let name = match text.parse() {
                    Ok(0) => Some(&""),
                    Ok(id) => self.strings.get(&id),
                    Err(_) => None,
                };
                let name =
                    name.ok_or_else(|| reader.damaged("found invalid string ID in a stack"))?;
                *text = (*name).to_owned();
            }
        }
        Ok(())
    }

    /// A string by its number; `None` if there is none.
    #[must_use]
    pub fn string(&self, id: u64) -> Option<&'a str> {
        if id == 0 { Some("") } else { self.strings.get(&id).copied() }
    }

    /// How many nanoseconds `ticks` are.
    #[must_use]
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency.max(1))) as u64
    }

    /// Whether the thread's number stands for no thread.
    #[must_use]
    pub fn is_no_thread(thread: u64) -> bool {
        thread == NO_THREAD
    }
}

fn take_mark(rest: &mut &[u8], mark: u8) -> Option<()> {
    let (first, tail) = rest.split_first()?;
    *rest = tail;
    (*first == mark).then_some(())
}

impl Batch<'_> {
    /// The next event; `Some(Err)` if what follows is none.
    pub fn next_event(&mut self) -> Option<Result<Event, String>> {
        let (number, rest) = self.payload.split_first()?;
        let Some(spec) = spec(*number) else {
            return Some(Err(format!("invalid event type: {number}")));
        };
        let mut rest = rest;
        let mut args = [0; 4];
        let dt = read_varint(&mut rest);
        let complete = args[..spec.args.len()].iter_mut().all(|arg| match read_varint(&mut rest) {
            Some(n) => {
                *arg = n;
                true
            }
            None => false,
        });
        let Some(dt) = dt.filter(|_| complete) else {
            return Some(Err(format!("an event {} is cut", spec.name)));
        };
        self.payload = rest;
        self.time = self.time.saturating_add(dt);
        Some(Ok(Event { time: self.time, kind: spec.kind, args }))
    }
}
