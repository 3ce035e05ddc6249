//! The scheduler's state, a line or more every N ms: `GOSCHED=schedtrace=N,scheddetail=1`.
//!
//! Go's format, to the letter, from the monitor. It neither allocates nor locks anything that others
//! hold for long; each line goes to standard error by one `write`. With `schedtracejson=1` each report
//! is one line of JSON instead, with the same names.
//!
//! What has no counterpart here is printed as Go does when there is nothing: `syscalltick`,
//! `gfreecnt`, `stopwait`, `mallocing`, `throwing`, `locks` and `dying` are 0, `preemptoff` is empty.
//! Goroutines that have ended are left out. The state is in motion while it is read.

mod form;

use crate::config::Report;
use crate::goroutine::GRef;
use crate::machine::Machine;
use crate::processor::Processor;
use crate::reason::WaitReason;
use crate::scheduler::SCHEDULER;
use crate::{fleet, slab, world};
use form::{Form, Value};
use gosched_base::os;
use gosched_protocol::Status;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// When the runtime started, in monotonic nanoseconds.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// The clock of reports. The monitor's.
pub(crate) struct Reporter {
    what: Option<Report>,
    next: u64,
}

/// The runtime starts.
pub(crate) fn start() {
    // ORDERING: Relaxed; the monitor is started later.
    STARTED.store(os::monotonic_ns(), Relaxed);
}

impl Reporter {
    /// By the settings, which the starting thread is about to publish.
    pub(crate) const fn new(what: Option<Report>) -> Reporter {
        Reporter { what, next: 0 }
    }

    /// When the next report is due; `u64::MAX` for never.
    pub(crate) fn next(&self) -> u64 {
        if self.what.is_some() { self.next } else { u64::MAX }
    }

    /// Whether there are any.
    pub(crate) fn is_on(&self) -> bool {
        self.what.is_some()
    }

    /// Prints one if it is due. Those that were missed are left out.
    pub(crate) fn print_if_due(&mut self, now: u64) {
        let Some(what) = self.what.filter(|_| now >= self.next) else { return };
        let is_first = self.next == 0;
        self.next = now + what.period_ns;
        if !is_first {
            print(what, now);
        }
    }
}

fn print(what: Report, now: u64) {
    // ORDERING: Relaxed; see `start`.
    let ms = now.saturating_sub(STARTED.load(Relaxed)) / 1_000_000;
    let mut form = Form::new(what.is_json);
    form.begin(ms);
    summary(&mut form);
    if what.is_detailed {
        detail(&mut form);
    } else {
        let queued = |p: &'static Processor| waiting_in_ring(p);
        form.list("runqueues", "", SCHEDULER.processors().map(queued));
        form.list("schedticks", "schedticks=", SCHEDULER.processors().map(|p| p.tick().into()));
        form.end_line();
    }
    form.end();
}

fn summary(form: &mut Form) {
    let is_short = u64::from(fleet::has_orders());
    // ORDERING: Relaxed; a statistic.
    let threads = SCHEDULER.known_threads.load(Relaxed);
    let asleep = SCHEDULER.sleeping_hint() + u32::from(SCHEDULER.is_polled());
    for (name, value) in [
        ("gomaxprocs", u64::from(SCHEDULER.procs())),
        ("idleprocs", SCHEDULER.unused_count().into()),
        ("threads", threads.into()),
        ("spinningthreads", SCHEDULER.searchers.count().into()),
        ("needspinning", is_short),
        ("idlethreads", asleep.into()),
        ("runqueue", SCHEDULER.global.len() as u64),
    ] {
        form.field(name, Value::Number(value));
    }
}

fn detail(form: &mut Form) {
    form.field("gcwaiting", Value::Bool(world::is_stopping()));
    form.field("nmidlelocked", Value::Number(fleet::locked_asleep().into()));
    form.field("stopwait", Value::Number(0));
    form.field("sysmonwait", Value::Bool(false));
    form.end_line();
    form.begin_items("ps");
    SCHEDULER.processors().for_each(|p| processor(form, p));
    form.end_items();
    form.begin_items("ms");
    for id in (0..SCHEDULER.machine_count()).rev() {
        if let Some(m) = SCHEDULER.machine(id) {
            machine(form, m);
        }
    }
    form.end_items();
    form.begin_items("gs");
    slab::for_each(|g| goroutine(form, g));
    form.end_items();
}

/// Without the one in the next slot, as Go counts.
fn waiting_in_ring(p: &Processor) -> u64 {
    let next = usize::from(p.ring.peek_next().is_some());
    p.ring.len().saturating_sub(next) as u64
}

fn processor(form: &mut Form, p: &'static Processor) {
    let machine = p.machine();
    form.begin_item('P', p.id.into());
    form.field("status", Value::Number(u64::from(machine.is_some())));
    form.field("schedtick", Value::Number(p.tick().into()));
    form.field("syscalltick", Value::Number(0));
    form.field("m", Value::Maybe(machine.map(|m| m.id.into())));
    form.field("runqsize", Value::Number(waiting_in_ring(p)));
    form.field("gfreecnt", Value::Number(0));
    form.field("timerslen", Value::Number(p.timers.len() as u64));
    form.end_item();
}

fn machine(form: &mut Form, m: &'static Machine) {
    let is_its = |p: &&'static Processor| p.machine().is_some_and(|of| of.id == m.id);
    // One that is blocked does not know yet that its processor was taken.
    let (p, g) = (m.processor().filter(is_its), m.current());
    let mut locked = None;
    slab::for_each(|g| {
        if g.locked_to() == Some(m.id) && is_alive(g) {
            locked = Some(g.id());
        }
    });
    form.begin_item('M', m.id.into());
    form.field("p", Value::Maybe(p.map(|p| p.id.into())));
    form.field("curg", Value::Maybe(g.map(|g| g.id())));
    for name in ["mallocing", "throwing"] {
        form.field(name, Value::Number(0));
    }
    form.field("preemptoff", Value::Words(""));
    for name in ["locks", "dying"] {
        form.field(name, Value::Number(0));
    }
    form.field("spinning", Value::Bool(p.is_some() && g.is_none()));
    form.field("blocked", Value::Bool(p.is_none() && g.is_none()));
    form.field("lockedg", Value::Maybe(locked));
    form.end_item();
}

fn is_alive(g: GRef) -> bool {
    !matches!(g.status.get(), Status::Dead | Status::Idle)
}

fn goroutine(form: &mut Form, g: GRef) {
    if !is_alive(g) {
        return;
    }
    let status = g.status.get();
    let reason = if status == Status::Waiting { g.reason() } else { WaitReason::Zero };
    let runs_on = (0..SCHEDULER.machine_count()).find(|id| {
        matches!(status, Status::Running | Status::Syscall)
            && SCHEDULER.machine(*id).and_then(Machine::current) == Some(g)
    });
    form.begin_item('G', g.id());
    form.field("status", Value::Status(status as u64, reason.as_str()));
    form.field("m", Value::Maybe(runs_on.map(Into::into)));
    form.field("lockedm", Value::Maybe(g.locked_to().map(Into::into)));
    form.end_item();
}
