//! A generation's strings and stacks, collected and written.

use crate::event::mark;
use crate::read::Frame;
use crate::write::{NO_THREAD, PAYLOAD_MAX, STRING_MAX, batch_header, push_varint};
use std::collections::HashMap;

/// Strings and stacks of one generation, with their numbers.
///
/// ```
/// use gosched_trace_format::{Frame, Table};
///
/// let mut table = Table::new();
/// table.string(1, "sleep");
/// let frame = Frame { pc: 16, function: "main".into(), file: "main.rs".into(), line: 3 };
/// table.stack(1, &[frame]);
/// let mut out = Vec::new();
/// table.write(&mut out, 1, 1000);
/// assert!(!out.is_empty());
/// ```
#[derive(Debug, Default)]
pub struct Table {
    strings: Vec<Vec<u8>>,
    stacks: Vec<Vec<u8>>,
    /// Numbers of strings that the frames name, from [`FIRST_OWN`] on.
    own: HashMap<String, u64>,
}

/// Numbers of strings above are the table's own.
const FIRST_OWN: u64 = 1 << 40;

impl Table {
    /// An empty one.
    #[must_use]
    pub fn new() -> Table {
        Table::default()
    }

    /// Enters a string, once for each number; numbers are below 2^40. Longer ones than readers take
    /// are cut.
    pub fn string(&mut self, id: u64, text: &str) {
        let text = &text[..text.floor_char_boundary(STRING_MAX)];
        let mut entry = vec![mark::STRING];
        push_varint(&mut entry, id);
        push_varint(&mut entry, text.len() as u64);
        entry.extend_from_slice(text.as_bytes());
        self.strings.push(entry);
    }

    /// Enters a stack, once for each number: the innermost frame first, at most 128. Readers take
    /// frames with one address for the same frame.
    pub fn stack(&mut self, id: u64, frames: &[Frame]) {
        let mut entry = vec![mark::STACK];
        push_varint(&mut entry, id);
        push_varint(&mut entry, frames.len() as u64);
        for frame in frames {
            let (function, file) = (self.own(&frame.function), self.own(&frame.file));
            [frame.pc, function, file, frame.line]
                .into_iter()
                .for_each(|n| push_varint(&mut entry, n));
        }
        self.stacks.push(entry);
    }

    fn own(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(id) = self.own.get(text) {
            return *id;
        }
        let id = FIRST_OWN + self.own.len() as u64;
        self.own.insert(text.to_owned(), id);
        self.string(id, text);
        id
    }

    /// Writes them in as many batches as it takes.
    pub fn write(&self, out: &mut Vec<u8>, generation: u64, time: u64) {
        batches(out, generation, time, mark::STRINGS, &self.strings);
        batches(out, generation, time, mark::STACKS, &self.stacks);
    }
}

fn batches(out: &mut Vec<u8>, generation: u64, time: u64, first: u8, entries: &[Vec<u8>]) {
    let mut payload = vec![first];
    let mut flush = |payload: &mut Vec<u8>| {
        if payload.len() > 1 {
            batch_header(out, generation, NO_THREAD, time, payload.len());
            out.extend_from_slice(payload);
            payload.truncate(1);
        }
    };
    for entry in entries {
        if payload.len() + entry.len() > PAYLOAD_MAX {
            flush(&mut payload);
        }
        payload.extend_from_slice(entry);
    }
    flush(&mut payload);
}
