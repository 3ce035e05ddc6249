//! Running a closure on a further stack of the same thread of execution.
//!
//! ```text
//!   old stack                          new stack
//!   | caller | switch_stack: rbp |     top | enter | f ... |
//!                        ^------- CFA of the one frame that spans both (rbp + 16)
//! ```
//!
//! Unwinders cross the border by that frame: its return address and saved rbp are found through
//! rbp, which the callee saves, and not through the stack pointer, which moved. Those that take a
//! caller's frame that lies lower for a broken stack ask `before_switch`. Panics do not cross it as
//! panics: they are caught on the new stack and resumed on the old one.
//!
//! Nothing records that a stack was borrowed: the bounds in force follow from the stack pointer
//! (`slot_of`), for `remaining` and for the overflow report alike.
//!
//! A scheduler that stops code anywhere must not stop it inside `alloc` and `free`: it brackets
//! these two as runtime code and uses `call_on` between them.

use std::arch::naked_asm;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use super::bounds::remaining;
use super::class::Class;
use super::depot;
use super::error::StackError;
use super::slot::Stack;

/// Runs `f` on a fresh stack with at least `bytes` usable bytes and returns its value.
///
/// Go needs no such thing, since its stacks are copied when they grow.
///
/// # Panics
/// With what `f` panics with; the new stack is given back first. Also if there is no memory for a
/// stack, or `bytes` exceeds 64 GiB.
///
/// # Examples
/// ```
/// use gosched_fiber::stack;
///
/// fn depth(n: usize) -> usize {
///     if n == 0 { 0 } else { 1 + depth(n - 1) }
/// }
///
/// assert_eq!(stack::grow(32 << 20, || depth(100_000)), 100_000);
/// ```
#[track_caller]
pub fn grow<R>(bytes: usize, f: impl FnOnce() -> R) -> R {
    let mut lease = Lease::new(bytes).unwrap_or_else(|error| panic!("stack::grow: {error}"));
    call_on(&mut lease.stack, f)
}

/// Runs `f` here if at least `red_zone` bytes of stack are left, else as `grow` does.
///
/// For recursion: called at each level, it makes a new stack only when the present one runs out.
///
/// # Panics
/// As `grow`.
///
/// # Examples
/// ```
/// use gosched_fiber::stack;
///
/// fn depth(n: usize) -> usize {
///     if n == 0 { 0 } else { 1 + stack::maybe_grow(64 << 10, 1 << 20, || depth(n - 1)) }
/// }
///
/// assert_eq!(depth(100_000), 100_000);
/// ```
#[track_caller]
pub fn maybe_grow<R>(red_zone: usize, bytes: usize, f: impl FnOnce() -> R) -> R {
    match remaining() {
        Some(left) if left >= red_zone => f(),
        _ => grow(bytes, f),
    }
}

/// A stack that is given back when the closure returns or panics.
struct Lease {
    stack: ManuallyDrop<Stack>,
}

impl Lease {
    fn new(bytes: usize) -> Result<Self, StackError> {
        let class = Class::for_bytes(bytes).ok_or(StackError::TooLarge { bytes })?;
        Ok(Self { stack: ManuallyDrop::new(depot::alloc(class)?) })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // SAFETY: the stack is taken once, as a value is dropped once.
        depot::free(unsafe { ManuallyDrop::take(&mut self.stack) });
    }
}

/// What the two sides of the switch share. Lives on the old stack.
struct Call<F, R> {
    f: Option<F>,
    result: Option<thread::Result<R>>,
}

/// Runs `f` on `stack`, which must not be in use below its top.
///
/// For callers that bracket taking and giving back of stacks themselves.
///
/// # Panics
/// With what `f` panics with.
pub fn call_on<R>(stack: &mut Stack, f: impl FnOnce() -> R) -> R {
    let mut call = Call { f: Some(f), result: None };
    let entry = entry_of(&call);
    // SAFETY: entry - it takes a pointer to a call of this very type; data - `call` outlives the
    // switch, which returns before this function does; top - a slot's top is a multiple of 4096,
    // and the slot is ours by the exclusive borrow.
    unsafe { switch_stack((&raw mut call).cast(), entry, stack.top()) };
    match call.result {
        Some(Ok(value)) => value,
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("the closure ran"),
    }
}

fn entry_of<F: FnOnce() -> R, R>(_: &Call<F, R>) -> unsafe extern "C" fn(*mut ()) {
    enter::<F, R>
}

/// The first function on the new stack.
///
/// # Safety
/// * `data` points to a `Call<F, R>` that nobody else uses.
unsafe extern "C" fn enter<F: FnOnce() -> R, R>(data: *mut ()) {
    // SAFETY: valid and unshared - the caller's only obligation.
    let call = unsafe { &mut *data.cast::<Call<F, R>>() };
    let Some(f) = call.f.take() else { return };
    call.result = Some(catch_unwind(AssertUnwindSafe(f)));
}

/// Calls `entry(data)` with the stack pointer at `top`, then comes back.
///
/// In: rdi = data, rsi = entry, rdx = top, a multiple of 16. Clobbers: what the C ABI allows.
/// CFI: from `mov rbp, rsp` on, the canonical frame address is rbp + 16 on the old stack.
///
/// # Safety
/// * `entry` may be called with `data`, and does not unwind.
/// * `top` is the multiple of 16 just above writable memory that is unused and suffices for `entry`.
#[unsafe(naked)]
unsafe extern "C" fn switch_stack(data: *mut (), entry: unsafe extern "C" fn(*mut ()), top: usize) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdx",
        "call rsi",
        ".globl __gosched_switch_stack_return",
        ".hidden __gosched_switch_stack_return",
        "__gosched_switch_stack_return:",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

unsafe extern "C" {
    /// Where `entry` returns to.
    #[link_name = "__gosched_switch_stack_return"]
    static SWITCH_STACK_RETURN: u8;
}

/// Where the caller of a switch goes on, if code returns to `pc` in it with this frame pointer: the
/// return address, and its stack and frame pointers. `read` tells the word at an address of the stack.
pub fn before_switch(
    pc: usize,
    bp: usize,
    mut read: impl FnMut(usize) -> Option<u64>,
) -> Option<[usize; 3]> {
    const WORD: usize = size_of::<usize>();
    if pc != (&raw const SWITCH_STACK_RETURN).addr() {
        return None;
    }
    let back = read(bp.checked_add(WORD)?)? as usize;
    Some([back, bp.checked_add(2 * WORD)?, read(bp)? as usize])
}
