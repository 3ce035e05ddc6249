//! What each event needs, and what it changes.

use super::state::{Collection, Context, GoStatus, Goroutine, ProcStatus, Processor, Range, State};
use crate::event::{Arg, Event, Kind, spec};
use crate::read::Generation;
use crate::write::NO_THREAD;

/// Whether the event is next; `Err`: it can never be.
type Advanced = Result<bool, String>;

fn wrong(what: impl Into<String>) -> Advanced {
    Err(what.into())
}

/// A goroutine that may begin to run: by its number of turns, on `thread`.
struct Start {
    thread: u64,
    g: u64,
    seq: u64,
}

impl State {
    pub(super) fn advance(
        &mut self,
        generation: &Generation<'_>,
        thread: u64,
        event: &Event,
    ) -> Advanced {
        look_up(generation, event)?;
        let [a, b, c, _] = event.args;
        match event.kind {
            Kind::ProcStatus => self.proc_status(thread, a, b),
            Kind::ProcStart => self.proc_start(thread, a, b),
            Kind::ProcStop => self.proc_stop(thread),
            Kind::ProcSteal => self.proc_steal(thread, a, b, c),
            Kind::GoStatus | Kind::GoStatusStack => self.go_status(thread, a, b, c),
            Kind::GoCreate => self.go_create(thread, a, GoStatus::Runnable),
            Kind::GoCreateBlocked => self.go_create(thread, a, GoStatus::Waiting),
            Kind::GoCreateSyscall => self.go_create_in_call(thread, a),
            Kind::GoDestroySyscall => self.go_destroy_in_call(thread),
            Kind::GoStart => self.go_start(&Start { thread, g: a, seq: b }),
            Kind::GoStop => self.go_leave(thread, Some(GoStatus::Runnable)),
            Kind::GoBlock => self.go_leave(thread, Some(GoStatus::Waiting)),
            Kind::GoDestroy => self.go_leave(thread, None),
            Kind::GoSwitch => {
                let left = Some(GoStatus::Waiting);
                self.go_switch(&Start { thread, g: a, seq: b }, left)
            }
            Kind::GoSwitchDestroy => self.go_switch(&Start { thread, g: a, seq: b }, None),
            Kind::GoUnblock => Ok(self.go_unblock(a, b)),
            Kind::GoSyscallBegin => self.call_begin(thread, a),
            Kind::GoSyscallEnd => self.call_end(thread),
            Kind::GoSyscallEndBlocked => self.call_end_blocked(thread),
            Kind::STWBegin => self.range_begin(thread, Range::Stopped),
            Kind::STWEnd => self.range_end(thread, Range::Stopped),
            Kind::GCMarkAssistBegin => self.range_begin(thread, Range::Assist),
            Kind::GCMarkAssistEnd => self.range_end(thread, Range::Assist),
            Kind::GCMarkAssistActive => {
                self.ranges.insert(Range::Assist(a));
                Ok(self.goroutines.contains_key(&a))
            }
            Kind::GCSweepActive => {
                self.ranges.insert(Range::Sweep(a));
                Ok(self.processors.contains_key(&a))
            }
            Kind::GCSweepBegin => self.sweep(thread, true),
            Kind::GCSweepEnd => self.sweep(thread, false),
            Kind::GCActive | Kind::GCBegin | Kind::GCEnd => self.collect(thread, event.kind, a),
            Kind::HeapAlloc | Kind::HeapGoal => self.with_processor(thread),
            Kind::ProcsChange | Kind::GoLabel | Kind::UserLog => self.with_running(thread),
            Kind::UserTaskBegin => {
                self.running(thread)?;
                if !self.tasks.insert(a) {
                    return wrong(format!("task ID conflict: {a}"));
                }
                Ok(true)
            }
            Kind::UserTaskEnd => {
                self.tasks.remove(&a);
                self.with_running(thread)
            }
            Kind::UserRegionBegin | Kind::UserRegionEnd => {
                let name = generation.string(b).unwrap_or_default();
                self.region(thread, event.kind, a, name)
            }
        }
    }

    fn set(&mut self, thread: u64, p: Option<u64>, g: Option<u64>) {
        self.threads.insert(thread, Context { p, g });
    }

    fn with_processor(&self, thread: u64) -> Advanced {
        match self.context(thread).p {
            Some(_) => Ok(true),
            None => wrong("expected a proc but didn't have one"),
        }
    }

    fn with_running(&self, thread: u64) -> Advanced {
        self.running(thread).map(|_| true)
    }

    /// The processor and the goroutine that runs on it.
    fn running(&self, thread: u64) -> Result<(u64, u64), String> {
        match self.context(thread) {
            Context { p: None, .. } => Err("expected a proc but didn't have one".into()),
            Context { g: None, .. } => Err("expected a goroutine but didn't have one".into()),
            Context { p: Some(p), g: Some(g) } => match self.goroutines.get(&g).map(|g| g.status) {
                Some(GoStatus::Running) => Ok((p, g)),
                other => Err(format!("goroutine {g} is {other:?}, not running")),
            },
        }
    }

    // ------------------------------------------------------------------ processors

    fn proc_status(&mut self, thread: u64, p: u64, number: u64) -> Advanced {
        let Some(status) = ProcStatus::from_number(number) else {
            return wrong(format!("invalid proc status {number}"));
        };
        let turn = self.first_turn();
        if let Some(known) = self.processors.get_mut(&p) {
            let is_forgotten =
                status == ProcStatus::Abandoned && known.status == ProcStatus::Syscall;
            if known.status != status && !is_forgotten {
                let old = known.status;
                return wrong(format!(
                    "inconsistent status for proc {p}: old {old:?} vs. new {status:?}"
                ));
            }
            known.turn = turn;
            return Ok(true);
        }
        self.processors.insert(p, Processor { status, turn });
        if matches!(status, ProcStatus::Running | ProcStatus::Syscall) {
            let context = self.context(thread);
            if context.p.is_some() || thread == NO_THREAD {
                return wrong(format!("proc {p} of a thread that has one, or of no thread"));
            }
            self.set(thread, Some(p), context.g);
        }
        Ok(true)
    }

    fn proc_start(&mut self, thread: u64, p: u64, seq: u64) -> Advanced {
        let (turn, context) = (self.turn(seq), self.context(thread));
        let Some(known) = self.processors.get_mut(&p) else { return Ok(false) };
        if known.status != ProcStatus::Idle || !turn.follows(known.turn) {
            return Ok(false);
        }
        if context.p.is_some() {
            return wrong("the thread has a proc already");
        }
        *known = Processor { status: ProcStatus::Running, turn };
        self.set(thread, Some(p), context.g);
        Ok(true)
    }

    fn proc_stop(&mut self, thread: u64) -> Advanced {
        let Context { p, g } = self.context(thread);
        let Some(known) = p.and_then(|p| self.processors.get_mut(&p)) else {
            return wrong("expected a proc but didn't have one");
        };
        if !matches!(known.status, ProcStatus::Running | ProcStatus::Syscall) {
            return wrong(format!("a proc that is {:?} is stopped", known.status));
        }
        known.status = ProcStatus::Idle;
        self.set(thread, None, g);
        Ok(true)
    }

    fn proc_steal(&mut self, thread: u64, p: u64, seq: u64, victim: u64) -> Advanced {
        let turn = self.turn(seq);
        let Some(known) = self.processors.get_mut(&p) else { return Ok(false) };
        let in_call = matches!(known.status, ProcStatus::Syscall | ProcStatus::Abandoned);
        if !in_call || !turn.follows(known.turn) {
            return Ok(false);
        }
        let was = known.status;
        *known = Processor { status: ProcStatus::Idle, turn };
        if thread == NO_THREAD {
            return wrong("a proc is stolen by no thread");
        }
        if was == ProcStatus::Abandoned {
            return Ok(true);
        }
        let held = self.context(victim);
        if held.p != Some(p) {
            return wrong(format!(
                "tried to steal proc {p} from thread {victim}, but got {:?} instead",
                held.p
            ));
        }
        self.set(victim, None, held.g);
        Ok(true)
    }

    // ------------------------------------------------------------------ goroutines

    fn go_status(&mut self, thread: u64, g: u64, of: u64, number: u64) -> Advanced {
        let Some(status) = GoStatus::from_number(number) else {
            return wrong(format!("invalid goroutine status {number}"));
        };
        let turn = self.first_turn();
        match self.goroutines.get_mut(&g) {
            Some(known) if known.status != status => {
                let old = known.status;
                return wrong(format!(
                    "inconsistent status for goroutine {g}: old {old:?} vs. new {status:?}"
                ));
            }
            Some(known) => {
                known.turn = turn;
                return Ok(true);
            }
            None if !self.is_first => {
                return wrong(format!(
                    "found goroutine status for new goroutine after the first generation: {g}"
                ));
            }
            None => {}
        }
        self.goroutines.insert(g, Goroutine { status, turn });
        let owner = match status {
            GoStatus::Running => thread,
            GoStatus::Syscall => of,
            GoStatus::Runnable | GoStatus::Waiting => return Ok(true),
        };
        let held = self.context(owner);
        if owner == NO_THREAD || held.g.is_some_and(|held| held != g) {
            return wrong(format!("goroutine {g} of thread {owner}, which has {:?}", held.g));
        }
        self.set(owner, held.p, Some(g));
        Ok(true)
    }

    fn go_create(&mut self, thread: u64, g: u64, status: GoStatus) -> Advanced {
        let context = self.context(thread);
        self.with_processor(thread)?;
        if context.g.is_some() {
            self.running(thread)?;
        }
        self.make(g, status)
    }

    fn make(&mut self, g: u64, status: GoStatus) -> Advanced {
        let turn = self.first_turn();
        match self.goroutines.insert(g, Goroutine { status, turn }) {
            None => Ok(true),
            Some(_) => wrong(format!("goroutine {g} is made twice")),
        }
    }

    fn go_create_in_call(&mut self, thread: u64, g: u64) -> Advanced {
        let context = self.context(thread);
        if context.g.is_some() || thread == NO_THREAD {
            return wrong("a goroutine appears in a call on a thread that has one, or on none");
        }
        self.make(g, GoStatus::Syscall)?;
        self.set(thread, context.p, Some(g));
        Ok(true)
    }

    fn go_destroy_in_call(&mut self, thread: u64) -> Advanced {
        let Context { p, g } = self.context(thread);
        let Some(g) = g else { return wrong("expected a goroutine but didn't have one") };
        if self.goroutines.get(&g).map(|g| g.status) != Some(GoStatus::Syscall) {
            return wrong("a goroutine that is in no call ends in one");
        }
        self.goroutines.remove(&g);
        if let Some(known) = p.and_then(|p| self.processors.get_mut(&p)) {
            if known.status != ProcStatus::Syscall {
                return wrong("the goroutine is in a call and its proc is not");
            }
            known.status = ProcStatus::Abandoned;
        }
        self.set(thread, None, None);
        Ok(true)
    }

    /// Whether the goroutine is in `status` and this is its next turn.
    fn is_turn_of(&self, g: u64, seq: u64, status: GoStatus) -> bool {
        let turn = self.turn(seq);
        self.goroutines.get(&g).is_some_and(|g| g.status == status && turn.follows(g.turn))
    }

    fn go_start(&mut self, start: &Start) -> Advanced {
        let Start { thread, g, seq } = *start;
        if !self.is_turn_of(g, seq, GoStatus::Runnable) {
            return Ok(false);
        }
        let context = self.context(thread);
        self.with_processor(thread)?;
        if let Some(other) = context.g {
            return wrong(format!("goroutine {other} runs on the thread already"));
        }
        let turn = self.turn(seq);
        self.goroutines.insert(g, Goroutine { status: GoStatus::Running, turn });
        self.set(thread, context.p, Some(g));
        Ok(true)
    }

    fn go_leave(&mut self, thread: u64, status: Option<GoStatus>) -> Advanced {
        let (p, g) = self.running(thread)?;
        match status.zip(self.goroutines.get_mut(&g)) {
            Some((status, known)) => known.status = status,
            None => {
                self.goroutines.remove(&g);
                self.regions.remove(&g);
            }
        }
        self.set(thread, Some(p), None);
        Ok(true)
    }

    fn go_switch(&mut self, start: &Start, left: Option<GoStatus>) -> Advanced {
        if !self.is_turn_of(start.g, start.seq, GoStatus::Waiting) {
            return Ok(false);
        }
        self.go_leave(start.thread, left)?;
        let turn = self.turn(start.seq);
        self.goroutines.insert(start.g, Goroutine { status: GoStatus::Running, turn });
        self.set(start.thread, self.context(start.thread).p, Some(start.g));
        Ok(true)
    }

    fn go_unblock(&mut self, g: u64, seq: u64) -> bool {
        let can = self.is_turn_of(g, seq, GoStatus::Waiting);
        if can {
            let turn = self.turn(seq);
            self.goroutines.insert(g, Goroutine { status: GoStatus::Runnable, turn });
        }
        can
    }

    // ----------------------------------------------------------------------- calls

    fn call_begin(&mut self, thread: u64, seq: u64) -> Advanced {
        let (p, g) = self.running(thread)?;
        let turn = self.turn(seq);
        let Some(known) = self.processors.get_mut(&p) else { return wrong("unknown proc") };
        if !turn.follows(known.turn) {
            return wrong(format!("can't make sequence: {turn:?} after {:?}", known.turn));
        }
        *known = Processor { status: ProcStatus::Syscall, turn };
        if let Some(known) = self.goroutines.get_mut(&g) {
            known.status = GoStatus::Syscall;
        }
        Ok(true)
    }

    /// The goroutine that is in a call on the thread.
    fn in_call(&mut self, thread: u64) -> Result<&mut Goroutine, String> {
        let g = self.context(thread).g.and_then(|g| self.goroutines.get_mut(&g));
        match g {
            None => Err("expected a goroutine but didn't have one".into()),
            Some(g) if g.status != GoStatus::Syscall => {
                Err(format!("it is {:?}, not in a call", g.status))
            }
            Some(g) => Ok(g),
        }
    }

    fn call_end(&mut self, thread: u64) -> Advanced {
        let p = self.context(thread).p;
        self.in_call(thread)?;
        let Some(known) = p.and_then(|p| self.processors.get_mut(&p)) else {
            return wrong("expected a proc but didn't have one");
        };
        if known.status != ProcStatus::Syscall {
            return wrong(format!("the proc is {:?}, not in a call", known.status));
        }
        known.status = ProcStatus::Running;
        self.in_call(thread)?.status = GoStatus::Running;
        Ok(true)
    }

    fn call_end_blocked(&mut self, thread: u64) -> Advanced {
        let p = self.context(thread).p;
        let status = p.and_then(|p| self.processors.get(&p)).map(|p| p.status);
        if status == Some(ProcStatus::Syscall) {
            return Ok(false);
        }
        self.in_call(thread)?.status = GoStatus::Runnable;
        self.set(thread, p, None);
        Ok(true)
    }

    // ---------------------------------------------------------------------- ranges

    fn range_begin(&mut self, thread: u64, of: fn(u64) -> Range) -> Advanced {
        let (_, g) = self.running(thread)?;
        if !self.ranges.insert(of(g)) {
            return wrong("it has begun already");
        }
        Ok(true)
    }

    fn range_end(&mut self, thread: u64, of: fn(u64) -> Range) -> Advanced {
        let (_, g) = self.running(thread)?;
        if !self.ranges.remove(&of(g)) {
            return wrong("tried to end what is not in-flight");
        }
        Ok(true)
    }

    fn sweep(&mut self, thread: u64, begins: bool) -> Advanced {
        let Some(p) = self.context(thread).p else {
            return wrong("expected a proc but didn't have one");
        };
        let range = Range::Sweep(p);
        let changed = if begins { self.ranges.insert(range) } else { self.ranges.remove(&range) };
        if changed { Ok(true) } else { wrong("a sweep in a sweep, or the end of none") }
    }

    fn collect(&mut self, thread: u64, kind: Kind, seq: u64) -> Advanced {
        let next = self.collection_seq.wrapping_add(1);
        if self.collection == Collection::Unknown {
            if kind == Kind::GCEnd {
                return wrong("encountered GCEnd when GC was in an undetermined state");
            }
        } else if seq != next {
            return Ok(false);
        } else {
            self.running(thread)?;
            let is_on = self.collection == Collection::On;
            if is_on == (kind == Kind::GCBegin) {
                return wrong("a collection in a collection, or the end of none");
            }
        }
        self.collection_seq = seq;
        self.collection = if kind == Kind::GCEnd { Collection::Off } else { Collection::On };
        Ok(true)
    }

    fn region(&mut self, thread: u64, kind: Kind, task: u64, name: &str) -> Advanced {
        let (_, g) = self.running(thread)?;
        let open = self.regions.entry(g).or_default();
        if kind == Kind::UserRegionBegin {
            open.push((task, name.to_owned()));
            return Ok(true);
        }
        match open.pop() {
            Some(region) if region != (task, name.to_owned()) => {
                wrong(format!("misuse of region in goroutine {g}"))
            }
            _ => Ok(true),
        }
    }
}

/// Whether the strings and stacks that the event names are there.
fn look_up(generation: &Generation<'_>, event: &Event) -> Result<(), String> {
    let Some(spec) = spec(event.kind as u8) else { return Ok(()) };
    for ((name, meaning), id) in spec.args.iter().zip(event.args) {
        let known = match meaning {
            Arg::String => generation.string(id).is_some(),
            Arg::Stack => id == 0 || generation.stacks.contains_key(&id),
            _ => true,
        };
        if !known {
            return Err(format!("found invalid {name} ID {id}"));
        }
    }
    Ok(())
}
