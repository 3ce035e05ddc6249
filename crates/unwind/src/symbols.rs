//! Names of addresses: functions, files and lines, inlined calls included.
//!
//! Reads the files that are loaded, each when it is first asked about, and keeps what it found. Takes a
//! lock and allocates: for user code, not for handlers. A goroutine must not be stopped meanwhile.

use crate::modules::{self, Mapping};
use addr2line::Loader;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// One function at an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// Demangled, without its hash.
    pub function: Arc<str>,
    /// As the compiler was told; empty if nothing is known.
    pub file: Arc<str>,
    /// 0 if nothing is known.
    pub line: u32,
    /// How far behind the beginning of the function that is there in the machine code, which inlined
    /// ones share.
    pub offset: usize,
}

/// The functions at an address, the innermost inlined one first.
pub type Symbols = Arc<[Symbol]>;

#[derive(Default)]
struct Known {
    /// The table of modules that the rest is true for.
    table: usize,
    files: Vec<(Range<usize>, Option<Opened>)>,
    addresses: HashMap<usize, Symbols>,
    words: HashMap<Box<str>, Arc<str>>,
}

struct Opened {
    loader: Loader,
    bias: usize,
    path: PathBuf,
}

// SAFETY: a loader is used by one thread at a time, under the lock; what makes it stay where it is are
// cells that know no thread.
unsafe impl Send for Opened {}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// What a look-up may need of the stack; goroutines may have less left.
const STACK_BYTES: usize = 192 << 10;

/// Calls `use_names` with the table of names, the only one meanwhile.
///
/// ```
/// use gosched_unwind::{Frames, here, prepare, symbols};
///
/// prepare();
/// let mut frames = Frames::new();
/// here(&mut frames);
/// let names = symbols::with(|table| table.at(frames.pcs()[0]));
/// assert!(names.iter().any(|name| name.function.contains("main")), "{names:?}");
/// ```
pub fn with<R>(use_names: impl FnOnce(&mut Names<'_>) -> R) -> R {
    gosched_fiber::stack::maybe_grow(STACK_BYTES, 2 * STACK_BYTES, || {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        known.follow_modules();
        use_names(&mut Names { known })
    })
}

/// The table of names.
pub struct Names<'a> {
    known: &'a mut Known,
}

impl Names<'_> {
    /// The functions at `pc`, which is as in [`Frames`](crate::Frames): a return address. Never empty.
    pub fn at(&mut self, pc: usize) -> Symbols {
        if let Some(found) = self.known.addresses.get(&pc) {
            return found.clone();
        }
        let found: Symbols = self.look_up(pc.wrapping_sub(1)).into();
        self.known.addresses.insert(pc, found.clone());
        found
    }

    fn look_up(&mut self, address: usize) -> Vec<Symbol> {
        let known = &mut *self.known;
        let Some(place) = open(&mut known.files, address) else {
            return vec![known.nameless("?", address)];
        };
        let Some(opened) = place else {
            return vec![known.nameless("?", address)];
        };
        let in_file = (address - opened.bias) as u64;
        let symbol = opened.loader.find_symbol_info(in_file);
        let start = symbol.as_ref().map_or(in_file, addr2line::Symbol::address);
        let offset = in_file.saturating_sub(start) as usize;
        let mut found = Vec::new();
        if let Ok(mut frames) = opened.loader.find_frames(in_file) {
            while let Ok(Some(frame)) = frames.next() {
                let Some(name) = frame.function.as_ref().and_then(|f| f.raw_name().ok()) else {
                    continue;
                };
                let (file, line) = frame
                    .location
                    .map_or(("", 0), |at| (at.file.unwrap_or(""), at.line.unwrap_or(0)));
                let function = word(&mut known.words, &demangled(&name));
                let file = word(&mut known.words, file);
                found.push(Symbol { function, file, line, offset });
            }
        }
        if found.is_empty() {
            let function = match &symbol {
                Some(symbol) => demangled(symbol.name()),
                None => opened.path.file_name().map_or("?".into(), |n| n.to_string_lossy().into()),
            };
            let function = word(&mut known.words, &function);
            let file = word(&mut known.words, "");
            found.push(Symbol { function, file, line: 0, offset });
        }
        found
    }
}

impl std::fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").field("addresses", &self.known.addresses.len()).finish()
    }
}

impl Known {
    /// Forgets what is not there any more, or somewhere else.
    fn follow_modules(&mut self) {
        let table = modules::mappings().as_ptr().addr();
        if std::mem::replace(&mut self.table, table) == table {
            return;
        }
        self.addresses.clear();
        let is_there = |range: &Range<usize>, path: &PathBuf| {
            modules::mappings().iter().any(|m| m.range == *range && m.path == *path)
        };
        self.files.retain(|(range, opened)| {
            opened.as_ref().is_some_and(|opened| is_there(range, &opened.path))
        });
    }

    fn nameless(&mut self, name: &str, offset: usize) -> Symbol {
        let (function, file) = (word(&mut self.words, name), word(&mut self.words, ""));
        Symbol { function, file, line: 0, offset }
    }
}

/// The file that is mapped at `address`, opened if need be; `None`: none is, or it can't be read.
fn open(
    files: &mut Vec<(Range<usize>, Option<Opened>)>,
    address: usize,
) -> Option<&Option<Opened>> {
    let known = files.iter().position(|(range, _)| range.contains(&address));
    let at = match known {
        Some(at) => at,
        None => {
            let mapping = modules::mappings().iter().find(|m| m.range.contains(&address))?;
            let Mapping { range, bias, path } = mapping.clone();
            let opened = Loader::new(&path).ok().map(|loader| Opened { loader, bias, path });
            files.push((range, opened));
            files.len() - 1
        }
    };
    files.get(at).map(|(_, opened)| opened)
}

/// One copy of each word.
fn word(words: &mut HashMap<Box<str>, Arc<str>>, text: &str) -> Arc<str> {
    match words.entry(text.into()) {
        Entry::Occupied(entry) => entry.get().clone(),
        Entry::Vacant(entry) => entry.insert(text.into()).clone(),
    }
}

fn demangled(name: &str) -> String {
    format!("{:#}", addr2line::demangle_auto(name.into(), None))
}
