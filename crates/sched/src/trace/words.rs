//! The words of traces: reasons, and names of what is done.

use crate::reason::WaitReason;
use gosched_trace_format::Table;

/// What a goroutine does at the top of its stack. Reasons to wait come from [`WAITS`] on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct What(u32);

/// Nothing: its function only.
pub(super) const FUNCTION: What = What(0);
/// It gives way by itself.
pub(super) const YIELDS: What = What(1);
/// It was told to, and does so on its way out of the runtime.
pub(super) const ASKED: What = What(2);
/// It was stopped between two instructions.
pub(super) const STOPPED: What = What(3);
/// A call that it has declared.
pub(super) const CALL: What = What(4);
/// A call that it has not declared.
pub(super) const UNDECLARED: What = What(5);
/// It wakes another.
pub(super) const WAKES: What = What(6);
/// A timer, a file or a plain thread does.
pub(super) const WOKEN_OUTSIDE: What = What(7);
const WAITS: u32 = 16;
/// So many numbers there can be.
pub(super) const WHATS: u32 = 64;
const _: () = assert!(WAITS as usize + WaitReason::all().len() <= WHATS as usize);

impl What {
    #[inline(always)]
    pub(super) fn waits(reason: WaitReason) -> What {
        What(WAITS + reason as u32)
    }
}

/// Strings that every generation has, by number.
pub(super) const GOSCHED: u64 = 1;
pub(super) const PREEMPTED: u64 = 2;
pub(super) const STOP_PROCS: u64 = 3;
pub(super) const STOP_COLLECT: u64 = 4;
pub(super) const STOP_TRACE: u64 = 5;
pub(super) const STOP_TEST: u64 = 6;
const REASONS: u64 = 16;

const FIXED: [(u64, &str); 6] = [
    (GOSCHED, "runtime.Gosched"),
    (PREEMPTED, "preempted"),
    (STOP_PROCS, "GOMAXPROCS"),
    (STOP_COLLECT, "gc"),
    (STOP_TRACE, "start trace"),
    (STOP_TEST, "pause"),
];

/// The number of the reason's words.
#[inline(always)]
pub(super) fn reason(reason: WaitReason) -> u64 {
    REASONS + reason as u64
}

/// Go's words for it in traces, which its tools sort by: `network` is the network profile,
/// what contains `chan`, `sync` or `select` the one of synchronisation.
fn reason_words(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Zero => "unspecified",
        WaitReason::ChanReceive => "chan receive",
        WaitReason::ChanSend => "chan send",
        WaitReason::ChanReceiveNil | WaitReason::ChanSendNil | WaitReason::SelectNoCases => {
            "forever"
        }
        WaitReason::Select => "select",
        WaitReason::Sleep => "sleep",
        WaitReason::IoWait => "network",
        WaitReason::CondWait => "sync.(*Cond).Wait",
        WaitReason::SemAcquire
        | WaitReason::MutexLock
        | WaitReason::RwMutexRLock
        | WaitReason::RwMutexLock
        | WaitReason::WaitGroupWait => "sync",
        WaitReason::Join => "sync (join)",
        WaitReason::Futex => "sync (futex)",
        WaitReason::Park | WaitReason::Fiber => reason.as_str(),
    }
}

/// Enters those that every generation has.
pub(super) fn enter_all(table: &mut Table) {
    FIXED.into_iter().for_each(|(id, text)| table.string(id, text));
    for what in WaitReason::all() {
        table.string(reason(*what), reason_words(*what));
    }
}

/// The name of what is done at the top of a stack; empty for the function itself.
pub(super) fn frame(what: u32) -> String {
    let words = match What(what) {
        FUNCTION => return String::new(),
        YIELDS => "yield",
        ASKED => "preempted at a safepoint",
        STOPPED => "preempted by signal",
        CALL => "blocking",
        UNDECLARED => "undeclared blocking",
        WAKES => "wake",
        WOKEN_OUTSIDE => "timer, file or plain thread",
        _ => WaitReason::from_number(what.wrapping_sub(WAITS) as u8).as_str(),
    };
    format!("gosched.{words}")
}

impl What {
    #[inline(always)]
    pub(super) fn number(self) -> u32 {
        self.0
    }
}
