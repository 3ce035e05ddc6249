//! From stacks and values to a file that `go tool pprof` opens.

use crate::{proto, text};
use flate2::Compression;
use flate2::write::GzEncoder;
use gosched_sched::Labels;
use gosched_sched::profile::symbols_at;
use gosched_unwind::symbols::Symbol;
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// A profile that grows.
#[derive(Default)]
pub(crate) struct Encoder {
    profile: proto::Profile,
    strings: HashMap<String, i64>,
    /// By address, and whether the innermost functions there are left out.
    locations: HashMap<(usize, bool), u64>,
    functions: HashMap<(i64, i64), u64>,
}

/// What is sampled, and in which unit.
pub(crate) type Kind = (&'static str, &'static str);

impl Encoder {
    /// Of values of these kinds, one for each `period` of the last one.
    pub(crate) fn new(kinds: &[Kind], period_kind: Kind, period: i64) -> Encoder {
        let mut this = Encoder::default();
        this.string("");
        this.profile.sample_types = kinds.iter().map(|kind| this.value_type(*kind)).collect();
        this.profile.period_type = Some(this.value_type(period_kind));
        this.profile.period = period;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        this.profile.time_ns = i64::try_from(since.as_nanos()).unwrap_or(0);
        for (index, mapping) in gosched_unwind::mappings().iter().enumerate() {
            let file = this.string(&mapping.path.to_string_lossy());
            this.profile.mappings.push(proto::Mapping {
                id: index as u64 + 1,
                start: mapping.range.start as u64,
                limit: mapping.range.end as u64,
                offset: (mapping.range.start - mapping.bias) as u64,
                file,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            });
        }
        this
    }

    /// When it began, and how long it lasted.
    pub(crate) fn set_time(&mut self, begun: SystemTime) {
        let since = begun.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.profile.time_ns = i64::try_from(since.as_nanos()).unwrap_or(0);
        let lasted = begun.elapsed().unwrap_or_default();
        self.profile.duration_ns = i64::try_from(lasted.as_nanos()).unwrap_or(i64::MAX);
    }

    /// Adds the stack of these return addresses, the innermost first.
    pub(crate) fn add(&mut self, pcs: &[usize], values: &[i64], labels: Option<&Labels>) {
        let location_ids = pcs.iter().map(|pc| self.location(*pc, false)).collect();
        self.push(location_ids, values, labels);
    }

    /// As [`add`](Encoder::add), without the innermost functions that are the runtime's or this crate's: the
    /// first one is the operation that waits.
    pub(crate) fn add_operation(&mut self, pcs: &[usize], values: &[i64]) {
        let pcs = text::without_runtime(pcs);
        let location = |(place, pc): (usize, &usize)| self.location(*pc, place == 0);
        let location_ids = pcs.iter().enumerate().map(location).collect();
        self.push(location_ids, values, None);
    }

    /// Adds a stack of one function that is in no file.
    pub(crate) fn add_named(
        &mut self,
        name: &str,
        (file, line): (&str, u32),
        values: &[i64],
        labels: Option<&Labels>,
    ) {
        let function_id = self.function(name, file);
        let line = proto::Line { function_id, line: line.into() };
        let id = self.profile.locations.len() as u64 + 1;
        let location = proto::Location { id, lines: vec![line], ..proto::Location::default() };
        self.profile.locations.push(location);
        self.push(vec![id], values, labels);
    }

    fn push(&mut self, location_ids: Vec<u64>, values: &[i64], labels: Option<&Labels>) {
        let labels = labels.into_iter().flat_map(Labels::iter);
        let labels = labels
            .map(|(key, text)| proto::Label {
                key: self.string(key),
                text: self.string(text),
                number: 0,
            })
            .collect();
        self.profile.samples.push(proto::Sample { location_ids, values: values.to_vec(), labels });
    }

    fn location(&mut self, pc: usize, is_operation: bool) -> u64 {
        let key = (pc, is_operation);
        if let Some(id) = self.locations.get(&key) {
            return *id;
        }
        let symbols = symbols_at(pc);
        let symbols = if is_operation { text::operation(&symbols) } else { &symbols };
        let lines = symbols.iter().map(|Symbol { function, file, line, .. }| proto::Line {
            function_id: self.function(function, file),
            line: (*line).into(),
        });
        let lines = lines.collect();
        // Go's convention: the address of a call, not the one behind it.
        let address = pc.wrapping_sub(1);
        let mapping = gosched_unwind::mappings().iter().position(|m| m.range.contains(&address));
        let id = self.profile.locations.len() as u64 + 1;
        self.profile.locations.push(proto::Location {
            id,
            mapping_id: mapping.map_or(0, |index| index as u64 + 1),
            address: address as u64,
            lines,
        });
        self.locations.insert(key, id);
        id
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let key = (self.string(name), self.string(file));
        let next = self.profile.functions.len() as u64 + 1;
        let id = *self.functions.entry(key).or_insert(next);
        if id == next {
            let (name, file) = key;
            // Without a name of the system's, tools take this one as it is: they would cut `<..>` out.
            self.profile.functions.push(proto::Function { id, name, system_name: 0, file });
        }
        id
    }

    fn value_type(&mut self, (kind, unit): Kind) -> proto::ValueType {
        proto::ValueType { kind: self.string(kind), unit: self.string(unit) }
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(id) = self.strings.get(text) {
            return *id;
        }
        let id = self.profile.strings.len() as i64;
        self.profile.strings.push(text.to_owned());
        self.strings.insert(text.to_owned(), id);
        id
    }

    /// Writes it, compressed.
    pub(crate) fn write(self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let mut gzip = GzEncoder::new(out, Compression::fast());
        gzip.write_all(&self.profile.encode_to_vec())?;
        gzip.finish().map(drop)
    }
}
