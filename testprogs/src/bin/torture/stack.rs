//! Code on a stack that the runtime knows nothing of, as other coroutines and JITs have.

use std::arch::naked_asm;
use testprogs::random::Random;
use testprogs::registers::{FLAGS_ANY, Held};

const BYTES: usize = 256 << 10;

/// What the code on the other stack gets.
struct Task {
    held: Held,
    rounds: u64,
}

/// Calls `f(task)` on the stack that ends at `top`.
///
/// # Safety
/// * `top` is 16-aligned, with room below for `f`, which does not unwind.
#[unsafe(naked)]
unsafe extern "C" fn call_on(top: usize, f: extern "C" fn(&mut Task), task: &mut Task) {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        "ret",
    )
}

extern "C" fn work(task: &mut Task) {
    task.held.keep(task.rounds);
}

/// Keeps registers for longer than a slice, on memory from the allocator.
pub(crate) fn foreign(random: &mut Random) {
    let mut memory = vec![0_u128; BYTES / size_of::<u128>()];
    let top = memory.as_mut_ptr_range().end as usize;
    let held = Held::random(random, FLAGS_ANY);
    let before = held.clone();
    let mut task = Task { held, rounds: random.below(200_000) };
    // SAFETY: aligned, and `work` needs a few KiB.
    unsafe { call_on(top & !15, work, &mut task) };
    assert_eq!(task.held, before);
}
