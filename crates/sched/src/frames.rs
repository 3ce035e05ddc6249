//! Whose code called whose, for dumps and profiles.
//!
//! A goroutine that does not run has left the registers of its code in its context: by the switch, by
//! the call that it has declared, or by the handler that has frozen it. Nobody is stopped for a look; if
//! the goroutine went on meanwhile, there is another one.
//!
//! Names need memory, files and a lock. They are for dumps that a program asks for, and for the thread
//! that writes the last one (see `fatal`).

use crate::blocking::blocking;
use crate::current::current;
use crate::goroutine::GRef;
use crate::labels::{self, Labels};
use crate::no_preempt::NoPreempt;
use gosched_protocol::Status;
use gosched_unwind::symbols::{self, Symbol, Symbols};
use gosched_unwind::{Frames, Registers};
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::Arc;

/// So many looks at a goroutine that goes on again and again.
const LOOKS: usize = 8;

/// Notes what is loaded. Neither in handlers nor inside the runtime.
pub(crate) fn prepare() {
    gosched_unwind::prepare();
}

/// What is known of a goroutine's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// They are found.
    Frames,
    /// It runs on another thread.
    Elsewhere,
    /// It has none: it has not begun, or has ended.
    None,
}

/// Finds the frames of `g`. If it is the caller, or was interrupted by it, it stands `at` there.
/// Signal-safe.
pub(crate) fn find(g: GRef, at: Option<[usize; 3]>, frames: &mut Frames) -> Found {
    if let Some(at) = at {
        gosched_unwind::walk(registers(at), frames);
        return Found::Frames;
    }
    if current() == Some(g) {
        gosched_unwind::here(frames);
        return Found::Frames;
    }
    for _ in 0..LOOKS {
        let stamp = || (g.id(), g.status.get(), g.position());
        let before @ (_, status, position) = stamp();
        match status {
            Status::Waiting | Status::Runnable if g.seems_started() => {}
            Status::Syscall => {}
            Status::Running => return Found::Elsewhere,
            _ => return Found::None,
        }
        gosched_unwind::walk(registers(position), frames);
        if stamp() == before {
            return Found::Frames;
        }
    }
    Found::Elsewhere
}

fn registers([pc, sp, bp]: [usize; 3]) -> Registers {
    Registers { pc, sp, bp }
}

/// What is printed for the frames at an address, once it was looked up.
#[derive(Default)]
pub(crate) struct Names {
    /// `None`: addresses are printed as they are.
    texts: Option<HashMap<usize, Box<str>>>,
}

impl Names {
    /// None: for handlers and inside the runtime.
    pub(crate) fn unknown() -> Names {
        Names { texts: None }
    }

    /// Those of the program. For user code.
    pub(crate) fn known() -> Names {
        prepare();
        Names { texts: Some(HashMap::new()) }
    }

    /// The labels of a goroutine, which need a lock as names do.
    pub(crate) fn labels(&self, g: GRef) -> Option<Arc<Labels>> {
        self.texts.as_ref().and_then(|_| labels::of(g))
    }

    fn write(&mut self, out: &mut impl Write, pc: usize) -> fmt::Result {
        match &mut self.texts {
            None => writeln!(out, "?(...)\n\tpc={:#x}", pc.wrapping_sub(1)),
            Some(texts) => out.write_str(texts.entry(pc).or_insert_with(|| text(pc))),
        }
    }
}

/// Writes what is known of the frames of `g`, Go's two lines for each.
pub(crate) fn write(
    out: &mut impl Write,
    g: GRef,
    at: Option<[usize; 3]>,
    names: &mut Names,
) -> fmt::Result {
    let mut frames = Frames::new();
    match find(g, at, &mut frames) {
        Found::None => Ok(()),
        Found::Elsewhere => {
            writeln!(out, "\tgoroutine running on other thread; stack unavailable")
        }
        Found::Frames => {
            for pc in frames.pcs() {
                names.write(out, *pc)?;
            }
            if frames.is_cut() {
                writeln!(out, "...additional frames elided...")?;
            }
            Ok(())
        }
    }
}

/// The functions at an address. Outside the runtime.
///
/// Reading them may take long, under a lock and on a stack that is made for it. So it is a call that lets
/// others run, and nobody stops it.
pub(crate) fn symbols_at(pc: usize) -> Symbols {
    blocking(|| {
        let _whole = NoPreempt::new();
        symbols::with(|names| names.at(pc))
    })
}

fn text(pc: usize) -> Box<str> {
    let symbols = symbols_at(pc);
    let mut text = String::new();
    for Symbol { function, file, line, offset } in shown(symbols.iter()) {
        let file = if file.is_empty() { "?" } else { file };
        let _ = writeln!(text, "{function}(...)\n\t{file}:{line} +{offset:#x}");
    }
    text.into()
}

/// Those of the functions at an address, each inlined into the next, that belong to the program: neither
/// the runtime's, nor those of the standard library that the runtime calls.
fn shown<'a>(functions: impl Iterator<Item = &'a Symbol>) -> Vec<&'a Symbol> {
    let functions: Vec<_> = functions.collect();
    let mut is_for_runtime = false;
    let mut shown: Vec<_> = functions
        .into_iter()
        .rev()
        .filter(|function| {
            let is_std = is_of_std(function);
            if !is_std {
                is_for_runtime = is_ours(function);
            }
            !(is_runtime(function) || is_std && is_for_runtime)
        })
        .collect();
    shown.reverse();
    shown
}

fn is_of_std(symbol: &Symbol) -> bool {
    let name = symbol.function.trim_start_matches(['<', '&']);
    ["core::", "std::", "alloc::"].iter().any(|path| name.starts_with(path))
}

/// Whether a function is of a crate that only the runtime calls.
fn is_ours(symbol: &Symbol) -> bool {
    is_runtime(symbol) && symbol.function.trim_start_matches(['<', '&']).starts_with("gosched_")
}

/// Whether a function is one of those that every goroutine has at its beginning, or that every wait
/// ends in. Go leaves its own out likewise.
fn is_runtime(symbol: &Symbol) -> bool {
    const PATHS: [&str; 14] = [
        "gosched_sched::",
        "gosched_fiber::",
        "gosched_base::",
        "gosched_protocol::",
        "gosched_runq::",
        "gosched_unwind::",
        "core::ops::function::",
        "core::panic::unwind_safe::",
        "std::panic::",
        "std::panicking::",
        "std::sys::backtrace::",
        "std::rt::",
        "__rust_try",
        "__rustc",
    ];
    let name = symbol.function.trim_start_matches(['<', '&']);
    // `<F as core::ops::function::FnOnce>::call_once` and its kin.
    let of_trait = name.split_once(" as ").map(|(_, of)| of);
    PATHS.iter().any(|path| name.starts_with(path) || of_trait.is_some_and(|t| t.starts_with(path)))
}
