//! A fiber: a stack with a thread-local block at its top, ready for whoever runs next on it.
//!
//! ```text
//!   low                                                                  high
//!   | guard | ......... stack  <- grows down | static thread-locals | control | head |
//!                                   stack_top ^                 tcb ^
//! ```
//!
//! Everything that a parked goroutine needs lies in the top two pages of its slot. The head is
//! colored: it is shifted down by a few cache lines, different from slot to slot, because the tops
//! of all stacks have the same address bits below 4 KiB and would share eight ways of the
//! first-level cache.
//!
//! Invariants
//! * I1. A fiber is in one place: held by a goroutine, or in one cache or list.
//! * I2. The head is written when the fiber is made and by its holder only.
//! * I3. A fiber in a cache has a block that is finished and reusable, or new. Its thread-locals are
//!   brought back to their first state when it is used again: they are written then anyway, and of a
//!   goroutine that has waited for long they are in no cache when it ends.

use crate::arch::Context;
use crate::host;
use crate::sanitizer;
use crate::stack::{self, Ahead, Class, Stack, StackError};
use crate::tls::{self, Block, Defect};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Fibers to be made in a row: what they need of the kernel and of libc is asked for together.
#[derive(Debug)]
pub(crate) struct Makings {
    class: Class,
    stacks: Ahead,
}

impl Makings {
    /// For `count` fibers. As [`Fiber::make`]: not inside the runtime.
    pub(crate) fn new(class: Class, count: usize) -> Makings {
        if count > 1 && tls::kind().has_blocks() {
            tls::expect(count);
        }
        Makings { class, stacks: Ahead::new(class, count, Fiber::top_bytes(class)) }
    }

    /// As [`Fiber::make`].
    pub(crate) fn make(&mut self) -> Result<Fiber, FiberError> {
        match self.stacks.next() {
            Some((stack, is_zeroed)) => Fiber::make_on(stack, is_zeroed),
            None => Fiber::make(self.class),
        }
    }
}

/// What lies at the very top of a fiber's slot.
#[derive(Debug)]
struct Head {
    stack: ManuallyDrop<Stack>,
    block: Option<Block>,
    stack_top: usize,
    /// For lists of idle fibers.
    next: Option<Fiber>,
    /// For lists of such lists: the one below, and the length of the one that this fiber heads.
    below: (Option<Fiber>, usize),
}

/// Lines by which neighbouring slots' heads are shifted against each other.
const COLORS: usize = 8;
const LINE: usize = 64;
/// What the first frames on a stack take; with them a block fills two pages in most programs.
const FRAME_BYTES: usize = 512;
/// Room for the head; keeps the control block above it aligned to 64.
const HEAD_BYTES: usize = 128;

const _: () = assert!(size_of::<Head>() <= HEAD_BYTES && align_of::<Head>() <= LINE);

/// A stack and its thread-local block. Copyable like the pointer it is; I1 is the holder's duty,
/// who promises to use no copy any more wherever a fiber is given away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fiber {
    head: NonNull<Head>,
}

// SAFETY: a fiber is memory that one holder uses at a time (I1); nothing in it knows its thread.
unsafe impl Send for Fiber {}
// SAFETY: as above; what can be read through a shared reference never changes after `make`.
unsafe impl Sync for Fiber {}

/// Why a fiber could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FiberError {
    /// No stack.
    Stack(StackError),
    /// No thread-local block.
    Block(Defect),
}

impl fmt::Display for FiberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FiberError::Stack(e) => write!(f, "no stack for a goroutine: {e}"),
            FiberError::Block(e) => write!(f, "no thread-local block for a goroutine: {e}"),
        }
    }
}

impl std::error::Error for FiberError {}

impl fmt::Debug for Fiber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fiber").field("stack_top", &self.stack_top()).finish_non_exhaustive()
    }
}

/// Numbers for blocks, as libc's locks see their owners.
static INDEX: AtomicU32 = AtomicU32::new(0);
static TID_BASE: std::sync::OnceLock<i32> = std::sync::OnceLock::new();

/// The next block's number: a random base per process, so that goroutines of two processes that
/// share a lock differ (most likely); above every kernel thread's (`pid_max` is at most 2^22) and
/// below 2^30, where the futex protocol's flags begin.
fn next_tid() -> i32 {
    const LOWEST: u64 = 1 << 22;
    const HIGHEST: u64 = (1 << 30) - (1 << 24);
    let base = *TID_BASE.get_or_init(|| {
        let mut random = [0_u8; 8];
        // SAFETY: fills eight bytes, which are ours.
        let got = unsafe { libc::getrandom(random.as_mut_ptr().cast(), 8, libc::GRND_NONBLOCK) };
        let seed = if got == 8 {
            u64::from_ne_bytes(random)
        } else {
            gosched_base::os::monotonic_ns() ^ (gosched_base::os::getpid() as u64) << 32
        };
        (LOWEST + seed % (HIGHEST - LOWEST)) as i32
    });
    // ORDERING: Relaxed; only uniqueness matters.
    base + (INDEX.fetch_add(1, Relaxed) % (1 << 24)) as i32
}

impl Fiber {
    /// Makes a fiber. With blocks this takes the loader's lock and allocates: not inside the
    /// runtime.
    pub fn make(class: Class) -> Result<Fiber, FiberError> {
        let (stack, is_zeroed) =
            stack::alloc_present(class, Fiber::top_bytes(class)).map_err(FiberError::Stack)?;
        Fiber::make_on(stack, is_zeroed)
    }

    /// What is touched first of a stack.
    fn top_bytes(class: Class) -> usize {
        let above_stack = COLORS * LINE + HEAD_BYTES + block_bytes();
        (above_stack + FRAME_BYTES).min(class.usable_bytes())
    }

    fn make_on(stack: Stack, is_zeroed: bool) -> Result<Fiber, FiberError> {
        let (top, limit) = (stack.top(), stack.limit());
        let color = top / class_stride(&stack) % COLORS * LINE;
        let head_at = top - color - HEAD_BYTES;
        let mut stack_top = head_at;
        let mut block = None;
        if tls::kind().has_blocks() {
            if head_at - limit > block_bytes() && !is_zeroed {
                clear_old_block(head_at);
            }
            // SAFETY: the slot is ours, from its limit to the head, and its top is zeroed.
            match unsafe { tls::make(limit..head_at, next_tid()) } {
                Ok(made) => {
                    stack_top = made.stack_top();
                    block = Some(made);
                }
                Err(defect) => {
                    stack::free(stack);
                    return Err(FiberError::Block(defect));
                }
            }
        }
        let head = head_at as *mut Head;
        let value = Head {
            stack: ManuallyDrop::new(stack),
            block,
            stack_top,
            next: None,
            below: (None, 0),
        };
        // SAFETY: inside the slot, aligned, and above all else that uses it.
        unsafe { head.write(value) };
        // SAFETY: an address inside a mapping.
        Ok(Fiber { head: unsafe { NonNull::new_unchecked(head) } })
    }

    fn head(&self) -> &Head {
        // SAFETY: written by `make`, and changed by the one holder only (I2).
        unsafe { self.head.as_ref() }
    }

    /// The address above the stack.
    #[inline]
    #[must_use]
    pub fn stack_top(&self) -> usize {
        self.head().stack_top
    }

    /// The lowest address of the stack.
    #[must_use]
    pub fn stack_limit(&self) -> usize {
        self.head().stack.limit()
    }

    /// The stack's size class.
    #[inline]
    #[must_use]
    pub fn class(&self) -> Class {
        self.head().stack.class()
    }

    /// The thread-local block, if the kind has blocks.
    #[inline]
    #[must_use]
    pub fn block(&self) -> Option<Block> {
        self.head().block
    }

    /// Makes `context` begin `entry(data, passed)` on this fiber.
    ///
    /// # Safety
    /// * The caller holds the fiber, and nothing runs on it.
    /// * `context` is the caller's.
    #[inline]
    pub unsafe fn prepare(
        &self,
        context: &mut Context,
        entry: unsafe extern "C" fn(*mut (), usize) -> !,
        data: *mut (),
    ) {
        let block = self.block();
        if let Some(block) = block {
            // SAFETY: finished or new (I3), and nothing runs on it, by the caller.
            unsafe { tls::restore(block) };
        }
        let fs = block.map_or(0, Block::tcb);
        context.begin_on_stack(self.stack_limit(), self.stack_top());
        // SAFETY: the stack below `stack_top` is the caller's and aligned to 64.
        unsafe { context.fresh(self.stack_top() as *mut u8, fs, entry, data) };
    }

    /// Does what libc does first on a new thread. On the fiber itself, before any user code.
    ///
    /// # Safety
    /// * The caller runs on this fiber, which nobody has used since it was prepared or renewed.
    #[inline]
    pub unsafe fn begin(&self) {
        if let Some(block) = self.block() {
            // SAFETY: by the caller; the block of the fiber that runs is loaded.
            unsafe { tls::begin(block) };
        }
    }

    /// Runs the destructors of everything thread-local. User code, on the fiber itself.
    ///
    /// # Safety
    /// * The caller runs on this fiber, and its goroutine has nothing left to do but this.
    #[inline]
    pub unsafe fn finish(&self) {
        if let Some(block) = self.block() {
            // SAFETY: by the caller; the block of the fiber that runs is loaded.
            unsafe { tls::finish(block) };
        }
    }

    /// Whether a finished fiber can be used again. If not, only [`destroy`](Fiber::destroy) is left.
    ///
    /// # Safety
    /// * [`finish`](Fiber::finish) was called, and no thread-local of it is touched meanwhile.
    #[inline]
    #[must_use]
    pub unsafe fn is_reusable(&self) -> bool {
        match self.block() {
            // SAFETY: by the caller.
            Some(block) => unsafe { tls::is_reusable(block) },
            None => true,
        }
    }

    /// Makes the fiber that the caller runs on ready for its next user, who goes on in the caller's
    /// frame. False: it is not reusable.
    ///
    /// # Safety
    /// * As for [`is_reusable`](Fiber::is_reusable).
    #[inline]
    #[must_use]
    pub unsafe fn renew(&self) -> bool {
        let Some(block) = self.block() else { return true };
        // SAFETY: by the caller.
        if !unsafe { tls::is_reusable(block) } {
            return false;
        }
        // SAFETY: by the caller.
        unsafe { tls::restore(block) };
        true
    }

    /// Frees what the block owns; the slot is given back with [`Remains::release`] later. Not
    /// inside the runtime. `None`: libc owns the block, which has to be used again.
    ///
    /// # Safety
    /// * [`finish`](Fiber::finish) was called, or the fiber never ran.
    /// * No copy of the fiber is used again.
    #[must_use]
    pub unsafe fn destroy(self) -> Option<Remains> {
        match self.block() {
            // SAFETY: by the caller.
            Some(block) if !unsafe { tls::destroy(block) } => None,
            _ => Some(Remains(self)),
        }
    }

    /// Gives the pages of its stack back, except those of the block.
    ///
    /// # Safety
    /// * The fiber is idle, and the caller's alone.
    pub(crate) unsafe fn release_pages(&self) {
        let stack = &self.head().stack;
        // SAFETY: by the caller; an idle fiber keeps nothing below its stack's top.
        unsafe { stack::release_pages(stack, stack.top() - self.stack_top()) };
    }

    /// Makes a finished fiber that is not [reusable](Fiber::is_reusable) ready for its next user.
    /// Takes the loader's lock: not inside the runtime.
    ///
    /// # Safety
    /// * As for [`is_reusable`](Fiber::is_reusable).
    pub unsafe fn scrub(&self) {
        if let Some(block) = self.block() {
            // SAFETY: by the caller.
            unsafe { tls::scrub(block) };
        }
    }

    /// Where it lies; only good for fetching.
    pub(crate) fn address(&self) -> usize {
        self.head.addr().get()
    }

    /// Takes the rest of the list that this fiber heads.
    #[inline]
    pub(crate) fn take_next(&mut self) -> Option<Fiber> {
        self.head_mut().next.take()
    }

    /// Puts this fiber in front of a list.
    #[inline]
    pub(crate) fn set_next(&mut self, next: Option<Fiber>) {
        self.head_mut().next = next;
    }

    /// Takes the lists below the one that this fiber heads, and the length of that one.
    #[inline]
    pub(crate) fn take_below(&mut self) -> (Option<Fiber>, usize) {
        std::mem::take(&mut self.head_mut().below)
    }

    /// Puts the list of `count` fibers that this one heads on top of other lists.
    #[inline]
    pub(crate) fn set_below(&mut self, below: Option<Fiber>, count: usize) {
        self.head_mut().below = (below, count);
    }

    fn head_mut(&mut self) -> &mut Head {
        // SAFETY: written by `make`; `&mut self` is the one holder's (I2).
        unsafe { self.head.as_mut() }
    }
}

/// A destroyed fiber whose memory waits for the end of its grace period.
#[derive(Debug)]
#[must_use = "give the slot back with `release`"]
pub struct Remains(Fiber);

impl Remains {
    /// Gives the slot back.
    ///
    /// # Safety
    /// * [`tls::wait_for_walkers`] was called after `destroy` and returned true, or a second has
    ///   passed: nobody walks libc's list of threads from before it.
    pub unsafe fn release(mut self) {
        // SAFETY: the holder's last use of the head, which is in the slot itself.
        let stack = unsafe { ManuallyDrop::take(&mut self.0.head_mut().stack) };
        sanitizer::forget(stack.limit(), stack.top());
        stack::free(stack);
    }
}

/// A slot that was used before holds its last block, and a new one expects zeroes. The bytes share
/// their pages with the head and the first frames, so a fresh slot pays no extra page for it.
fn clear_old_block(head_at: usize) {
    let bytes = block_bytes();
    let at = (head_at - bytes) as *mut u8;
    // SAFETY: inside the slot, which nothing uses; the caller has compared the sizes.
    unsafe { at.write_bytes(0, bytes) };
}

/// How much of a fiber its thread-local block takes, if it has one.
fn block_bytes() -> usize {
    if tls::kind().has_blocks() { tls::block_bytes() } else { 0 }
}

fn class_stride(stack: &Stack) -> usize {
    stack.class().stride()
}

/// Loads the block of `context`, if it differs from what is loaded.
///
/// # Safety
/// * As for [`host::load_block`]; `loaded` is what FS holds.
#[inline(always)]
pub unsafe fn load_block_of(host: *const host::Host, loaded: usize, context: &Context) {
    if context.fs() != loaded {
        // SAFETY: by the caller.
        unsafe { host::load_block(host, context.fs()) };
    }
}
