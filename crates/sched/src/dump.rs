//! What every goroutine does, in Go's form.

use crate::config::Traceback;
use crate::goroutine::GRef;
use crate::reason::WaitReason;
use crate::scheduler::SCHEDULER;
use crate::{names, slab};
use gosched_protocol::Status;
use std::fmt::{self, Write};

/// Writes one paragraph for each goroutine:
///
/// ```text
/// goroutine 7 "name" [chan receive, 2 minutes]:
/// created by src/main.rs:12:5 in goroutine 1
/// ```
///
/// Go's `runtime.Stack(buf, true)`, without frames yet. The list is a snapshot in motion: a
/// goroutine may have moved on while it is written.
///
/// # Errors
/// What `out` returns.
pub fn dump(out: &mut impl Write) -> fmt::Result {
    write_all(out)
}

/// As [`dump`]; neither allocates nor locks.
pub(crate) fn write_all(out: &mut impl Write) -> fmt::Result {
    write_others(out, None)
}

/// Whether fatal errors print the goroutines that did not cause them.
pub(crate) fn shows_others() -> bool {
    traceback() == Traceback::All
}

fn traceback() -> Traceback {
    SCHEDULER.settled.get().map(|settled| settled.traceback).unwrap_or_default()
}

/// What a fatal error prints: `cause` first, then the others, as far as `GOSCHED=traceback` allows.
pub(crate) fn write_fatal(out: &mut impl Write, cause: Option<GRef>) -> fmt::Result {
    let traceback = traceback();
    if traceback == Traceback::None {
        return Ok(());
    }
    if let Some(g) = cause {
        write_one(out, g)?;
    }
    match traceback {
        Traceback::Single if cause.is_some() => Ok(()),
        _ => write_others(out, cause),
    }
}

/// Writes one paragraph for all goroutines that do the same and were spawned at the same place, the
/// many first:
///
/// ```text
/// 120 goroutines [chan receive, up to 7 minutes]:
/// created by src/pool.rs:12:5
/// ```
///
/// For goroutines that nobody wakes any more: they are many, and old. See [`dump`].
///
/// # Errors
/// What `out` returns.
pub fn dump_groups(out: &mut impl Write) -> fmt::Result {
    let mut groups = std::collections::BTreeMap::<_, (usize, u16)>::new();
    slab::for_each(|g| {
        let status = g.status.get();
        if names::read(g).0 == 0 || matches!(status, Status::Dead | Status::Idle) {
            return;
        }
        let site = g.origin().map(|(site, _)| (site.file(), site.line(), site.column()));
        let minutes = if status == Status::Waiting { g.waiting_minutes() } else { 0 };
        let (count, oldest) = groups.entry((words(g, status), site)).or_default();
        (*count, *oldest) = (*count + 1, minutes.max(*oldest));
    });
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for ((words, site), (count, oldest)) in groups {
        let noun = if count == 1 { "goroutine" } else { "goroutines" };
        write!(out, "{count} {noun} [{words}")?;
        if oldest > 0 {
            write!(out, ", up to {oldest} minutes")?;
        }
        writeln!(out, "]:")?;
        if let Some((file, line, column)) = site {
            writeln!(out, "created by {file}:{line}:{column}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// What it does, in a word.
fn words(g: GRef, status: Status) -> &'static str {
    if status == Status::Waiting { g.reason().as_str() } else { status.as_str() }
}

/// As [`write_all`], without `but`.
pub(crate) fn write_others(out: &mut impl Write, but: Option<GRef>) -> fmt::Result {
    let mut result = Ok(());
    slab::for_each(|g| {
        if result.is_ok() && Some(g) != but {
            result = write_one(out, g);
        }
    });
    result
}

fn write_one(out: &mut impl Write, g: GRef) -> fmt::Result {
    let status = g.status.get();
    let words = words(g, status);
    let (id, name) = names::read(g);
    if id == 0 || matches!(status, Status::Dead | Status::Idle) {
        return Ok(());
    }
    write!(out, "goroutine {id} ")?;
    if let Some(name) = name {
        write!(out, "{:?} ", name.as_str())?;
    }
    write!(out, "[{words}")?;
    if status == Status::Syscall && g.reason() == WaitReason::Futex {
        write!(out, ", {}", WaitReason::Futex.as_str())?;
    }
    if status == Status::Waiting && g.waiting_minutes() > 0 {
        write!(out, ", {} minutes", g.waiting_minutes())?;
    }
    if g.locked_to().is_some() {
        write!(out, ", locked to thread")?;
    }
    writeln!(out, "]:")?;
    write_origin(out, g)?;
    writeln!(out)
}

/// Where `g` was spawned, and by whom.
pub(crate) fn write_origin(out: &mut impl Write, g: GRef) -> fmt::Result {
    let Some((site, parent)) = g.origin() else { return Ok(()) };
    write!(out, "created by {}:{}:{}", site.file(), site.line(), site.column())?;
    if parent != 0 {
        write!(out, " in goroutine {parent}")?;
    }
    writeln!(out)
}
