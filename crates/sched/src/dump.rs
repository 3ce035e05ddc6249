//! What every goroutine does, in Go's form.

use crate::config::Traceback;
use crate::fatal::Request;
use crate::frames::{self, Names};
use crate::goroutine::{GRef, GoroutineId};
use crate::names::{self, Name};
use crate::reason::WaitReason;
use crate::scheduler::SCHEDULER;
use crate::slab;
use gosched_protocol::Status;
use std::fmt::{self, Write};

/// Writes one paragraph for each goroutine:
///
/// ```text
/// goroutine 7 "name" [chan receive, 2 minutes] {request: 42}:
/// app::worker(...)
///     src/main.rs:33 +0x2f
/// created by src/main.rs:12:5 in goroutine 1
/// ```
///
/// Go's `runtime.Stack(buf, true)`. The frames of the runtime itself are left out, arguments are not
/// known, and a goroutine that runs on another thread says so instead. The list is a snapshot in motion:
/// a goroutine may have moved on while it is written.
///
/// # Errors
/// What `out` returns.
pub fn dump(out: &mut impl Write) -> fmt::Result {
    let (mut names, mut text) = (Names::known(), String::new());
    let mut result = Ok(());
    slab::for_each(|g| {
        if result.is_ok() {
            text.clear();
            let _ = Part::of(g).write(&mut text, Some(&mut names));
            result = out.write_str(&text);
        }
    });
    result
}

/// As [`dump`], without frames; neither allocates nor locks.
pub(crate) fn write_all(out: &mut impl Write) -> fmt::Result {
    let mut result = Ok(());
    slab::for_each(|g| {
        if result.is_ok() {
            result = Part::of(g).write(out, None);
        }
    });
    result
}

/// Whether fatal errors print the goroutines that did not cause them.
pub(crate) fn shows_others() -> bool {
    traceback() == Traceback::All
}

fn traceback() -> Traceback {
    SCHEDULER.settled.get().map(|settled| settled.traceback).unwrap_or_default()
}

/// Calls `f` with what a fatal error prints: the cause first, then the others, as far as
/// `GOSCHED=traceback` allows.
pub(crate) fn for_each_of(request: Request, mut f: impl FnMut(Part)) {
    let Request { cause, at, is_headed } = request;
    let traceback = traceback();
    if traceback == Traceback::None {
        return;
    }
    if let Some(g) = cause {
        f(Part { g, at, is_headed });
    }
    if traceback == Traceback::All || cause.is_none() {
        slab::for_each(|g| {
            if Some(g) != cause {
                f(Part::of(g));
            }
        });
    }
}

/// Writes one paragraph for all goroutines that do the same and were spawned at the same place, the
/// many first:
///
/// ```text
/// 120 goroutines [chan receive, up to 7 minutes]:
/// app::pool::worker(...)
///     src/pool.rs:33 +0x2f
/// created by src/pool.rs:12:5
/// ```
///
/// What waits for a channel that has no other side at all (`never()`, a select without cases) says
/// `nobody on the other side`. One that has lost its other side ends the wait instead, with an error.
///
/// The frames are one's of them. For goroutines that nobody wakes any more: they are many, and old. See [`dump`].
///
/// # Errors
/// What `out` returns.
pub fn dump_groups(out: &mut impl Write) -> fmt::Result {
    let mut names = Names::known();
    let mut groups = std::collections::BTreeMap::<_, (usize, u16, GRef)>::new();
    slab::for_each(|g| {
        let status = g.status.get();
        if names::read(g).0 == 0 || matches!(status, Status::Dead | Status::Idle) {
            return;
        }
        let site = g.origin().map(|(site, _)| (site.file(), site.line(), site.column()));
        let minutes = if status == Status::Waiting { g.waiting_minutes() } else { 0 };
        let group = groups.entry((words(g, status), site)).or_insert((0, 0, g));
        (group.0, group.1) = (group.0 + 1, minutes.max(group.1));
    });
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (count, ..))| std::cmp::Reverse(*count));
    for ((words, site), (count, oldest, one)) in groups {
        let noun = if count == 1 { "goroutine" } else { "goroutines" };
        write!(out, "{count} {noun} [{words}")?;
        if oldest > 0 {
            write!(out, ", up to {oldest} minutes")?;
        }
        if one.status.get() == Status::Waiting && one.reason().is_for_nobody() {
            write!(out, ", nobody on the other side")?;
        }
        writeln!(out, "]:")?;
        frames::write(out, one, None, &mut names)?;
        if let Some((file, line, column)) = site {
            writeln!(out, "created by {file}:{line}:{column}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// What it does, in a word.
pub(crate) fn words(g: GRef, status: Status) -> &'static str {
    if status == Status::Waiting { g.reason().as_str() } else { status.as_str() }
}

/// One paragraph of a dump.
pub(crate) struct Part {
    g: GRef,
    /// Where it stands, if it is the caller or was interrupted by it.
    at: Option<[usize; 3]>,
    /// Its first line was written already.
    is_headed: bool,
}

impl Part {
    pub(crate) fn of(g: GRef) -> Part {
        Part { g, at: None, is_headed: false }
    }

    /// Writes it, with its frames if there are `names`. Without names, or with unknown ones, it neither
    /// allocates nor locks.
    pub(crate) fn write(self, out: &mut impl Write, names: Option<&mut Names>) -> fmt::Result {
        let Part { g, at, is_headed } = self;
        let status = g.status.get();
        let (id, name) = names::read(g);
        // Its number is 0 while its next life begins, whatever the status was a moment ago.
        if id == 0 || matches!(status, Status::Dead | Status::Idle) {
            return Ok(());
        }
        if !is_headed {
            write_head(out, g, (id, name), status)?;
            let labels = names.as_ref().and_then(|names| names.labels(g));
            if let Some(labels) = labels.filter(|labels| !labels.is_empty()) {
                write!(out, " {labels}")?;
            }
            writeln!(out, ":")?;
        }
        if let Some(names) = names {
            frames::write(out, g, at, names)?;
        }
        write_origin(out, g)?;
        writeln!(out)
    }
}

fn write_head(
    out: &mut impl Write,
    g: GRef,
    (id, name): (GoroutineId, Option<Name>),
    status: Status,
) -> fmt::Result {
    write!(out, "goroutine {id} ")?;
    if let Some(name) = name {
        write!(out, "{:?} ", name.as_str())?;
    }
    write!(out, "[{}", words(g, status))?;
    if status == Status::Syscall && g.reason() == WaitReason::Futex {
        write!(out, ", {}", WaitReason::Futex.as_str())?;
    }
    if status == Status::Waiting && g.waiting_minutes() > 0 {
        write!(out, ", {} minutes", g.waiting_minutes())?;
    }
    if g.locked_to().is_some() {
        write!(out, ", locked to thread")?;
    }
    write!(out, "]")
}

/// Where `g` was spawned, and by whom.
fn write_origin(out: &mut impl Write, g: GRef) -> fmt::Result {
    let Some((site, parent)) = g.origin() else { return Ok(()) };
    write!(out, "created by {}:{}:{}", site.file(), site.line(), site.column())?;
    if parent != 0 {
        write!(out, " in goroutine {parent}")?;
    }
    writeln!(out)
}
