//! What every goroutine does, in Go's form.

use crate::goroutine::GRef;
use crate::reason::WaitReason;
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
    let words = match status {
        Status::Waiting => g.reason().as_str(),
        _ => status.as_str(),
    };
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
