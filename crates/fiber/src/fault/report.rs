//! What is said about an overflow before the process ends.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicPtr};

use crate::stack::SlotInfo;

use super::writer::Text;

/// Go's exit code for fatal errors.
const EXIT_CODE: libc::c_int = 2;

/// No thread has this number.
const NOBODY: libc::pid_t = 0;

/// Who ran on a stack.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The goroutine's number.
    pub id: u64,
    /// Its name. The process ends after the report, so it may be borrowed for ever.
    pub name: Option<&'static [u8]>,
}

/// What the layer above knows about stacks.
///
/// Both run in a signal handler on the alternate stack, in a process whose other threads still run
/// and which may hold any lock: they must be async-signal-safe.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Says who runs on the slot.
    pub identity: fn(&SlotInfo) -> Option<Identity>,
    /// Writes whatever follows the line that names the goroutine.
    pub dump: fn(&SlotInfo),
}

/// Written by: `set_hooks`. Read by: the handler. Null: no hooks.
static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(ptr::null_mut());

/// The thread that writes the report. Written by: the first to fault. Read by: those that follow.
static REPORTER: AtomicI32 = AtomicI32::new(NOBODY);

/// Sets who is asked about stacks when one overflows.
pub fn set_hooks(hooks: &'static Hooks) {
    // ORDERING: pairs with `hooks`; makes the pointed-to value visible.
    HOOKS.store(ptr::from_ref(hooks).cast_mut(), Release);
}

fn hooks() -> Option<&'static Hooks> {
    // ORDERING: pairs with `set_hooks`; makes the pointed-to value visible.
    let hooks = HOOKS.load(Acquire);
    // SAFETY: null, or a reference that lives for ever and is only read.
    unsafe { hooks.as_ref() }
}

/// Reports an overflow and ends the process. One thread reports; others wait for the end.
pub(super) fn overflow_in_signal(slot: &SlotInfo, sp: usize) -> ! {
    // ORDERING: relaxed, the word stands alone.
    if REPORTER.compare_exchange(NOBODY, thread_number(), Relaxed, Relaxed).is_err() {
        wait_for_the_end();
    }
    overflow_text(slot, sp).print();
    if let Some(hooks) = hooks() {
        if let Some(identity) = (hooks.identity)(slot) {
            identity_text(identity).print();
        }
        (hooks.dump)(slot);
    }
    exit()
}

/// Ends the process if the thread that reports has faulted itself: a hook went wrong.
pub(super) fn end_if_reporting_in_signal() {
    // ORDERING: relaxed, a thread sees its own store.
    let reporter = REPORTER.load(Relaxed);
    if reporter != NOBODY && reporter == thread_number() {
        exit();
    }
}

/// What to do about it, beside the recursion that was not meant.
const ADVICE: &str = "where so much is needed: thread::Builder::stack_size, or GOSCHED=stack=1M";

pub(super) fn overflow_text(slot: &SlotInfo, sp: usize) -> Text {
    let mut text = Text::new();
    text.text("runtime: goroutine stack exceeds ")
        .decimal((slot.top() - slot.limit()) as u64)
        .text("-byte limit\nruntime: sp=")
        .hex(sp)
        .text(" stack=[")
        .hex(slot.limit())
        .text(", ")
        .hex(slot.top())
        .text("]\nruntime: ")
        .text(ADVICE)
        .text("\nfatal error: stack overflow\n\n");
    text
}

pub(super) fn identity_text(identity: Identity) -> Text {
    let mut text = Text::new();
    text.text("goroutine ").decimal(identity.id);
    if let Some(name) = identity.name {
        text.text(" \"").foreign(&name[..name.len().min(NAME_BYTES_MAX)]).text("\"");
    }
    text.text(" [running]:\n");
    text
}

/// Longer names are cut so that the rest of the line fits.
const NAME_BYTES_MAX: usize = 256;

fn thread_number() -> libc::pid_t {
    // SAFETY: asks for a number; asked of the kernel, since thread-locals may be a goroutine's.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

fn wait_for_the_end() -> ! {
    loop {
        // SAFETY: sleeps until a signal comes.
        unsafe { libc::pause() };
    }
}

fn exit() -> ! {
    loop {
        // SAFETY: ends all threads at once; nothing of ours has to be undone.
        unsafe { libc::syscall(libc::SYS_exit_group, EXIT_CODE) };
    }
}
