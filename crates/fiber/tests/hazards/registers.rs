//! What a switch must keep: callee-saved registers, control words, the chain of frames.

use crate::harness::{BLOCKS, coroutine, in_each, on_thread};
use gosched_fiber::{Coroutine, suspend};
use std::arch::asm;

fn mxcsr() -> u32 {
    let mut word = 0_u32;
    // SAFETY: stores a word, which is ours.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack)) };
    word
}

fn set_mxcsr(word: u32) {
    // SAFETY: callers set no reserved bits and unmask nothing.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack)) };
}

fn x87() -> u16 {
    let mut word = 0_u16;
    // SAFETY: stores a word, which is ours.
    unsafe { asm!("fnstcw [{}]", in(reg) &raw mut word, options(nostack)) };
    word
}

fn set_x87(word: u16) {
    // SAFETY: callers only change the rounding.
    unsafe { asm!("fldcw [{}]", in(reg) &raw const word, options(nostack)) };
}

/// Rounding of SSE: bits 13 and 14. Of x87: bits 10 and 11.
const SSE_UP: u32 = 2 << 13;
const SSE_DOWN: u32 = 1 << 13;
const X87_UP: u16 = 2 << 10;
const X87_DOWN: u16 = 1 << 10;
const SSE_ROUNDING: u32 = 3 << 13;
const X87_ROUNDING: u16 = 3 << 10;
/// Sticky flags of SSE.
const FLAGS: u32 = 0x3f;

fn roundings() -> (u32, u16) {
    (mxcsr() & SSE_ROUNDING, x87() & X87_ROUNDING)
}

fn rounding_one(sse: u32, x87_word: u16) -> Coroutine {
    coroutine(move || {
        assert_eq!(roundings(), (0, 0), "starts with the ABI's defaults");
        let (sse_before, x87_before) = (mxcsr(), x87());
        set_mxcsr(sse_before | sse);
        set_x87(x87_before | x87_word);
        for _ in 0..3 {
            suspend();
            assert_eq!(roundings(), (sse, x87_word), "kept");
        }
    })
}

#[test]
fn control_words_belong_to_the_coroutine() {
    in_each(BLOCKS, "registers::control_words_belong_to_the_coroutine", |_| {
        let mut up = rounding_one(SSE_UP, X87_UP);
        let mut only_x87 = rounding_one(0, X87_DOWN);
        let mut only_sse = rounding_one(SSE_DOWN, 0);
        for _ in 0..3 {
            for c in [&mut up, &mut only_x87, &mut only_sse] {
                assert!(!c.resume());
                assert_eq!(roundings(), (0, 0), "leaked into the carrier");
            }
        }
        on_thread(move || {
            set_mxcsr(mxcsr() | SSE_DOWN);
            for c in [&mut up, &mut only_x87, &mut only_sse] {
                assert!(c.resume());
                assert_eq!(roundings(), (SSE_DOWN, 0), "the carrier's own");
            }
        });
        // Ended with another rounding: the next one on the fiber starts fresh.
        let mut next = rounding_one(0, 0);
        while !next.resume() {}
    });
}

/// The sticky exception flags are a thread's too.
#[test]
fn exception_flags_belong_to_the_coroutine() {
    in_each(BLOCKS, "registers::exception_flags_belong_to_the_coroutine", |_| {
        set_mxcsr(mxcsr() & !FLAGS);
        let mut c = coroutine(|| {
            set_mxcsr(mxcsr() | FLAGS);
            suspend();
            assert_eq!(mxcsr() & FLAGS, FLAGS);
        });
        assert!(!c.resume());
        assert_eq!(mxcsr() & FLAGS, 0);
        assert!(c.resume());
        assert_eq!(mxcsr() & FLAGS, 0);
    });
}

extern "C" fn suspend_from_asm() {
    suspend();
}

/// Fills all callee-saved registers with `seed` and numbers after it, suspends, and returns how
/// many differ afterwards.
#[unsafe(naked)]
extern "C" fn keep_registers(seed: u64) -> u64 {
    std::arch::naked_asm!(
        "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
        "push rdi",
        "lea rbx, [rdi + 1]", "lea rbp, [rdi + 2]", "lea r12, [rdi + 3]",
        "lea r13, [rdi + 4]", "lea r14, [rdi + 5]", "lea r15, [rdi + 6]",
        "call {suspend}",
        "pop rdi",
        "xor eax, eax", "xor ecx, ecx",
        "sub rbx, rdi", "cmp rbx, 1", "setne cl", "add eax, ecx",
        "sub rbp, rdi", "cmp rbp, 2", "setne cl", "add eax, ecx",
        "sub r12, rdi", "cmp r12, 3", "setne cl", "add eax, ecx",
        "sub r13, rdi", "cmp r13, 4", "setne cl", "add eax, ecx",
        "sub r14, rdi", "cmp r14, 5", "setne cl", "add eax, ecx",
        "sub r15, rdi", "cmp r15, 6", "setne cl", "add eax, ecx",
        "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
        "ret",
        suspend = sym suspend_from_asm,
    )
}

#[test]
fn callee_saved_registers_survive() {
    in_each(BLOCKS, "registers::callee_saved_registers_survive", |_| {
        let mut all: Vec<_> =
            (1..=8).map(|i| coroutine(move || assert_eq!(keep_registers(i << 32), 0))).collect();
        all.iter_mut().for_each(|c| assert!(!c.resume()));
        on_thread(move || all.iter_mut().rev().for_each(|c| assert!(c.resume())));
    });
}

/// Records the frame pointer it is called with, then follows the chain.
#[unsafe(naked)]
extern "C" fn frame_pointer() -> usize {
    std::arch::naked_asm!("mov rax, rbp", "ret")
}

#[test]
fn a_fresh_fiber_begins_with_a_null_frame_pointer() {
    use gosched_fiber::arch::{self, Context};
    use gosched_fiber::stack::{self, Class};
    use std::cell::Cell;

    struct Seen {
        frame: Cell<usize>,
        passed: Cell<usize>,
        inner: Context,
        outer: Context,
    }

    /// # Safety
    /// * The first frame's call, with a `Seen`.
    #[unsafe(naked)]
    unsafe extern "C" fn entry(data: *mut (), passed: usize) -> ! {
        // rbp is what the first frame left; hand it to `body` as a third argument.
        std::arch::naked_asm!("mov rdx, rbp", "call {body}", "ud2", body = sym body)
    }

    extern "C" fn body(data: *mut (), passed: usize, frame: usize) -> ! {
        // SAFETY: the test keeps it alive.
        let seen = unsafe { &mut *data.cast::<Seen>() };
        seen.frame.set(frame);
        seen.passed.set(passed);
        let (from, to) = (&raw mut seen.inner, &raw const seen.outer);
        // SAFETY: saved when this was entered.
        unsafe { arch::switch(from, to, 0) };
        unreachable!("resumed again")
    }

    let stack = stack::alloc(Class::DEFAULT).expect("a stack");
    let mut seen = Seen {
        frame: Cell::new(usize::MAX),
        passed: Cell::new(0),
        inner: Context::empty(),
        outer: Context::empty(),
    };
    let data = (&raw mut seen).cast();
    // SAFETY: a stack of our own; the block stays the thread's.
    unsafe { seen.inner.fresh(stack.top() as *mut u8, 0, entry, data) };
    let (from, to) = (&raw mut seen.outer, &raw const seen.inner);
    // SAFETY: made just now.
    unsafe { arch::switch(from, to, 77) };
    assert_eq!(seen.frame.get(), 0);
    assert_eq!(seen.passed.get(), 77);
    assert!(frame_pointer() != 0 || !cfg!(debug_assertions));
    stack::free(stack);
}

/// A scheduler renews a fiber while it runs on it, and goes on with the next function there. The
/// host must be found all the same, also where it is found through a thread-local.
#[test]
fn a_fiber_renewed_in_place_still_finds_its_host() {
    in_each(BLOCKS, "registers::a_fiber_renewed_in_place_still_finds_its_host", |_| {
        use gosched_fiber::{Fiber, arch, host, load_block_of, stack::Class};
        thread_local! {
            static VALUE: std::cell::Cell<u8> = const { std::cell::Cell::new(1) };
        }
        struct Shared {
            inner: arch::Context,
            outer: arch::Context,
            fiber: Fiber,
            same_host: bool,
            renewed: bool,
        }
        /// # Safety
        /// * The first frame's call, with a `Shared`.
        unsafe extern "C" fn entry(data: *mut (), _: usize) -> ! {
            // SAFETY: the test keeps it alive.
            let shared = unsafe { &mut *data.cast::<Shared>() };
            VALUE.set(2);
            let before = host::current();
            // SAFETY: no thread-local of this block is in use.
            shared.renewed = unsafe { shared.fiber.renew() };
            shared.same_host = host::current() == before && !before.is_null();
            shared.renewed &= VALUE.get() == 1;
            let (from, to) = (&raw mut shared.inner, &raw const shared.outer);
            // SAFETY: the host's own block.
            unsafe { load_block_of(host::current(), host::current_block(), &shared.outer) };
            // SAFETY: saved when this was entered.
            unsafe { arch::switch(from, to, 0) };
            unreachable!("resumed again")
        }
        let record = Box::leak(Box::new(host::Host::unbound()));
        // SAFETY: leaked; a plain thread.
        unsafe { host::bind(record) };
        let mut shared = Shared {
            inner: arch::Context::empty(),
            outer: arch::Context::empty(),
            fiber: Fiber::make(Class::DEFAULT).expect("memory"),
            same_host: false,
            renewed: false,
        };
        let data = (&raw mut shared).cast();
        // SAFETY: nothing runs on it.
        unsafe { shared.fiber.prepare(&mut shared.inner, entry, data) };
        shared.outer.set_fs(host::current_block());
        let (from, to) = (&raw mut shared.outer, &raw const shared.inner);
        // SAFETY: the fiber's block.
        unsafe { load_block_of(host::current(), host::current_block(), &shared.inner) };
        // SAFETY: made just now.
        unsafe { arch::switch(from, to, 0) };
        assert!(shared.renewed && shared.same_host);
    });
}
