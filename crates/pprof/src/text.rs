//! Go's text forms of profiles.

use gosched_sched::profile::symbols_at;
use gosched_unwind::symbols::Symbol;
use std::io::{self, Write};

/// Whether a function is one of those in which a wait ends, or by which it tells of itself.
fn is_inner(symbol: &Symbol) -> bool {
    const PATHS: [&str; 6] = [
        "gosched_sched::",
        "gosched_fiber::",
        "gosched_pprof::",
        "gosched_unwind::",
        "gosched_sync::profile::",
        "gosched_channel::profile::",
    ];
    PATHS.iter().any(|path| symbol.function.starts_with(path))
}

/// The frames of `pcs` without the innermost ones that are the runtime's or this crate's: the first one is
/// the operation that waits.
pub(crate) fn without_runtime(pcs: &[usize]) -> &[usize] {
    let inner = pcs.iter().take_while(|pc| symbols_at(**pc).iter().all(is_inner)).count();
    if inner == pcs.len() { pcs } else { &pcs[inner..] }
}

/// The same of the functions at one address.
pub(crate) fn operation(symbols: &[Symbol]) -> &[Symbol] {
    let inner = symbols.iter().take_while(|symbol| is_inner(symbol)).count();
    if inner == symbols.len() { symbols } else { &symbols[inner..] }
}

/// Writes ` @ 0x12 0x34`.
pub(crate) fn addresses(out: &mut impl Write, pcs: &[usize]) -> io::Result<()> {
    write!(out, " @")?;
    pcs.iter().try_for_each(|pc| write!(out, " {pc:#x}"))?;
    writeln!(out)
}

/// Writes a line for each function, and an empty one.
pub(crate) fn frames(out: &mut impl Write, pcs: &[usize]) -> io::Result<()> {
    for pc in pcs {
        for symbol in symbols_at(*pc).iter() {
            let (function, file, line) = (&symbol.function, &symbol.file, symbol.line);
            let (at, offset) = (pc.wrapping_sub(1), symbol.offset);
            writeln!(out, "#\t{at:#x}\t{function}+{offset:#x}\t{file}:{line}")?;
        }
    }
    writeln!(out)
}
