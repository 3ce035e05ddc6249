//! Why a goroutine waits: one list for park, dump, trace, metrics and page.

/// What a parked goroutine waits for. The words are Go's (`waitReasonStrings`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum WaitReason {
    /// Nothing said.
    Zero,
    /// A receive on a channel.
    ChanReceive,
    /// A send on a channel.
    ChanSend,
    /// A receive on a channel that is never ready.
    ChanReceiveNil,
    /// A send on a channel that is never ready.
    ChanSendNil,
    /// A select with cases.
    Select,
    /// A select without cases.
    SelectNoCases,
    /// A sleep.
    Sleep,
    /// A socket.
    IoWait,
    /// A semaphore.
    SemAcquire,
    /// A condition variable.
    CondWait,
    /// A mutex.
    MutexLock,
    /// A read lock.
    RwMutexRLock,
    /// A write lock.
    RwMutexLock,
    /// A wait group.
    WaitGroupWait,
    /// `thread::park` (no counterpart in Go).
    Park,
    /// Another goroutine's result (no counterpart in Go).
    Join,
    /// A stack and thread-local block for its first run (no counterpart in Go).
    Fiber,
    /// A futex, without end, in a declared call: a lock or condition variable of std (no counterpart
    /// in Go).
    Futex,
}

impl WaitReason {
    /// The words that dumps and traces print.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            WaitReason::Zero => "",
            WaitReason::ChanReceive => "chan receive",
            WaitReason::ChanSend => "chan send",
            WaitReason::ChanReceiveNil => "chan receive (nil chan)",
            WaitReason::ChanSendNil => "chan send (nil chan)",
            WaitReason::Select => "select",
            WaitReason::SelectNoCases => "select (no cases)",
            WaitReason::Sleep => "sleep",
            WaitReason::IoWait => "IO wait",
            WaitReason::SemAcquire => "semacquire",
            WaitReason::CondWait => "sync.Cond.Wait",
            WaitReason::MutexLock => "sync.Mutex.Lock",
            WaitReason::RwMutexRLock => "sync.RWMutex.RLock",
            WaitReason::RwMutexLock => "sync.RWMutex.Lock",
            WaitReason::WaitGroupWait => "sync.WaitGroup.Wait",
            WaitReason::Park => "park",
            WaitReason::Join => "join",
            WaitReason::Fiber => "fiber",
            WaitReason::Futex => "futex",
        }
    }

    /// Whether there is nobody who could end such a wait, but for its own time limit or context.
    pub(crate) fn is_for_nobody(self) -> bool {
        use WaitReason::{ChanReceiveNil, ChanSendNil, SelectNoCases};
        matches!(self, ChanReceiveNil | ChanSendNil | SelectNoCases)
    }

    /// Each of them.
    pub(crate) const fn all() -> &'static [WaitReason] {
        &ALL
    }

    pub(crate) fn from_number(n: u8) -> WaitReason {
        ALL.iter().copied().find(|r| *r as u8 == n).unwrap_or(WaitReason::Zero)
    }
}

const ALL: [WaitReason; 19] = [
    WaitReason::Zero,
    WaitReason::ChanReceive,
    WaitReason::ChanSend,
    WaitReason::ChanReceiveNil,
    WaitReason::ChanSendNil,
    WaitReason::Select,
    WaitReason::SelectNoCases,
    WaitReason::Sleep,
    WaitReason::IoWait,
    WaitReason::SemAcquire,
    WaitReason::CondWait,
    WaitReason::MutexLock,
    WaitReason::RwMutexRLock,
    WaitReason::RwMutexLock,
    WaitReason::WaitGroupWait,
    WaitReason::Park,
    WaitReason::Join,
    WaitReason::Fiber,
    WaitReason::Futex,
];
