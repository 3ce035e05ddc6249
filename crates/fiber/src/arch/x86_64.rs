//! x86-64: the context switch, the first frame of a stack, FS and GS.
//!
//! A suspended context is one cache line in the goroutine's descriptor, not a block of pushed
//! registers, so that the switch needs no push and no `ret`: call-frame information stays true in
//! every instruction but the three between the stack pointer's load and the jump, and the jump is
//! predicted from its own history instead of the return stack (1.4 ns against 9 to 13 ns here).
//!
//! ```text
//!   Context (64 bytes)                     a fresh stack
//!   0  sp     stack pointer                top   -> +------------------+
//!   8  pc     where to go on                        | entry  (fn)      |
//!   16 rbx    LLVM reserves both, so an             | data   (*mut ())  | <- sp
//!   24 rbp    asm block can't clobber them          +------------------+
//!   32 fs     thread-local block                    | pc = first_frame |
//!   40 mxcsr  SSE control word (u32)
//!   44 fpucw  x87 control word (u16)
//!   48 pkru   rights of protection keys (u32), once such are in use
//! ```
//!
//! Invariants
//! * I1. A context is written only by `switch` on its way out (and by `Context::fresh`), and read
//!   only by the `switch` that resumes it; between the two it belongs to whoever holds the
//!   goroutine.
//! * I2. Everything the C ABI calls callee-saved survives a switch: rbx and rbp by hand, r12 to r15
//!   because the asm block declares them clobbered, so the compiler has spilled what it needs.
//! * I3. MXCSR and the x87 control word belong to the goroutine (the ABI calls them preserved, and
//!   the sticky exception flags in MXCSR are a thread's). Each is compared, and written only when
//!   it differs: a load costs more than the compare. Reading MXCSR is the dearest part of a switch
//!   that loads no block (4 of 6 ns; the x87 word 1.5), and there is no cheaper way to ask; beside
//!   the load of FS nearly all of it is hidden.
//! * I4. The frame-pointer chain and the unwinder both end in `first_frame`: rbp is 0 there and
//!   its return address is undefined.

mod caller;
mod keys;
pub mod preempt;

pub use caller::jump_by_caller;
pub use keys::{has_protection_keys, use_protection_keys};

use crate::sanitizer::{self, Shadow};
use gosched_base::prefetch;
use std::arch::{asm, naked_asm};
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// A suspended execution: enough to resume it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Context {
    sp: usize,
    pc: usize,
    rbx: usize,
    rbp: usize,
    fs: usize,
    mxcsr: u32,
    fpucw: u16,
    pkru: u32,
    stamp: u32,
    shadow: Shadow,
}

const _: () = assert!(size_of::<Context>() == 64);

/// What the System V ABI says a thread starts with.
const MXCSR_DEFAULT: u32 = 0x1f80;
/// As above, for the x87 unit: extended precision, all exceptions masked.
const FPUCW_DEFAULT: u16 = 0x037f;

/// The CPU's counter of time, as it is about now: neither reads nor writes are ordered by it.
#[inline(always)]
#[must_use]
pub fn counter() -> u64 {
    // SAFETY: every CPU of this architecture has it, and Linux lets programs read it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Asks for the line that the pointer at `place` points to. Others may write it at the same time,
/// as for [`prefetch_suspended`].
///
/// # Safety
/// * `place` is memory that stays mapped.
#[inline(always)]
pub unsafe fn prefetch_through<T>(place: *const Option<NonNull<T>>) {
    let pointer: usize;
    // SAFETY: reads a word of mapped memory. Not as Rust reads: the owner's writes may race.
    unsafe {
        asm!(
            "mov {pointer}, [{place}]",
            place = in(reg) place,
            pointer = out(reg) pointer,
            options(nostack, preserves_flags, readonly),
        );
    }
    prefetch(pointer);
}

/// Asks for the lines that a suspended goroutine touches first when it is resumed: the top of its
/// stack and the middle of its thread-local block, and, at these distances from that, what its end
/// looks at. A context that stands nowhere yet has none.
///
/// Its owner may write the context at the same time. What is read is used as an address to fetch
/// from and for nothing else, so a torn or outdated value is harmless.
///
/// # Safety
/// * `context` is memory that stays mapped.
#[inline(always)]
pub unsafe fn prefetch_suspended(context: *const Context, at_end: &[AtomicIsize]) {
    let (sp, fs): (usize, usize);
    // SAFETY: reads two words of mapped memory. Not as Rust reads: the owner's writes may race.
    unsafe {
        asm!(
            "mov {sp}, [{context} + {sp_at}]",
            "mov {fs}, [{context} + {fs_at}]",
            context = in(reg) context,
            sp_at = const offset_of!(Context, sp),
            fs_at = const offset_of!(Context, fs),
            sp = out(reg) sp,
            fs = out(reg) fs,
            options(nostack, preserves_flags, readonly),
        );
    }
    if sp == 0 {
        return;
    }
    for line in 0..4 {
        prefetch(sp.wrapping_add(line * 64));
    }
    prefetch(fs);
    for distance in at_end {
        // ORDERING: Relaxed; good for fetching only.
        prefetch(fs.wrapping_add_signed(distance.load(Relaxed)));
    }
}

/// Where the code of `context` stood when that was last written: program counter, stack pointer, frame
/// pointer.
///
/// Its owner may write it at the same time; then they are not of one moment.
///
/// # Safety
/// * `context` is memory that stays mapped.
#[must_use]
pub unsafe fn peek(context: *const Context) -> [usize; 3] {
    let (pc, sp, bp): (usize, usize, usize);
    // SAFETY: reads three words of mapped memory. Not as Rust reads: the owner's writes may race.
    unsafe {
        asm!(
            "mov {pc}, [{context} + {pc_at}]",
            "mov {sp}, [{context} + {sp_at}]",
            "mov {bp}, [{context} + {bp_at}]",
            context = in(reg) context,
            pc_at = const offset_of!(Context, pc),
            sp_at = const offset_of!(Context, sp),
            bp_at = const offset_of!(Context, rbp),
            pc = out(reg) pc,
            sp = out(reg) sp,
            bp = out(reg) bp,
            options(nostack, preserves_flags, readonly),
        );
    }
    [pc, sp, bp]
}

/// What lies at the top of a fresh stack; `first_frame` reads it.
#[derive(Debug)]
#[repr(C)]
pub struct FrameOnStack {
    data: *mut (),
    entry: unsafe extern "C" fn(*mut (), usize) -> !,
}

const _: () = assert!(size_of::<FrameOnStack>() == 16);

impl Context {
    /// A context that nothing was saved to yet; only a place for [`switch`] to save into.
    #[must_use]
    pub const fn empty() -> Context {
        Context {
            sp: 0,
            pc: 0,
            rbx: 0,
            rbp: 0,
            fs: 0,
            mxcsr: MXCSR_DEFAULT,
            fpucw: FPUCW_DEFAULT,
            pkru: keys::UNSAVED,
            stamp: 0,
            shadow: Shadow::EMPTY,
        }
    }

    /// Makes this context begin `entry(data, passed)` at the top of a stack, where `passed` is
    /// what the resuming [`switch`] hands over.
    ///
    /// # Safety
    /// * `top` is 16-aligned and the end of a writable stack that nothing else uses.
    /// * `fs` is a thread-local block that is right for what `entry` does.
    #[inline]
    pub unsafe fn fresh(
        &mut self,
        top: *mut u8,
        fs: usize,
        entry: unsafe extern "C" fn(*mut (), usize) -> !,
        data: *mut (),
    ) {
        debug_assert!((top as usize).is_multiple_of(16));
        let frame = top.wrapping_sub(size_of::<FrameOnStack>()).cast::<FrameOnStack>();
        // SAFETY: the caller owns the stack below `top`; 16 bytes fit and are aligned.
        unsafe { frame.write(FrameOnStack { data, entry }) };
        self.sp = frame as usize;
        self.pc = first_frame as *const () as usize;
        self.rbx = 0;
        self.rbp = 0;
        self.fs = fs;
        self.mxcsr = MXCSR_DEFAULT;
        self.fpucw = FPUCW_DEFAULT;
        self.pkru = keys::UNSAVED;
    }

    /// Notes that it stands nowhere any more: it was left for good. Whoever fetches what comes next
    /// then asks for nothing of its former life.
    #[inline(always)]
    pub(crate) fn stands_nowhere(&mut self) {
        self.sp = 0;
    }

    #[inline(always)]
    pub(crate) fn shadow(&mut self) -> &mut Shadow {
        &mut self.shadow
    }

    /// The thread-local block that belongs to this context.
    #[inline]
    #[must_use]
    pub fn fs(&self) -> usize {
        self.fs
    }

    /// Gives the context another thread-local block.
    #[inline]
    pub fn set_fs(&mut self, fs: usize) {
        self.fs = fs;
    }

    /// What the context's owner has noted with it, in a line that is at hand whenever somebody
    /// suspends or resumes it. Neither [`switch`] nor [`fresh`](Context::fresh) touches it.
    #[inline]
    #[must_use]
    pub fn stamp(&self) -> u32 {
        self.stamp
    }

    /// Notes a word for the owner of the moment.
    #[inline]
    pub fn set_stamp(&mut self, stamp: u32) {
        self.stamp = stamp;
    }

    /// Notes where the running code stands, for who wants its frames while it is elsewhere: not for
    /// [`switch`]. In the caller's own frame, which has to stay as long as the note is to be true.
    #[inline(always)]
    pub fn note_here(&mut self) {
        // SAFETY: stores three registers in the context.
        unsafe {
            asm!(
                "lea {pc}, [rip]",
                "mov [{context} + {pc_at}], {pc}",
                "mov [{context} + {sp_at}], rsp",
                "mov [{context} + {bp_at}], rbp",
                context = in(reg) &raw mut *self,
                pc = out(reg) _,
                pc_at = const offset_of!(Context, pc),
                sp_at = const offset_of!(Context, sp),
                bp_at = const offset_of!(Context, rbp),
                options(nostack, preserves_flags),
            );
        }
    }

    /// As [`note_here`](Context::note_here), of code that a signal has interrupted: program counter,
    /// stack pointer, frame pointer.
    pub fn note(&mut self, [pc, sp, bp]: [usize; 3]) {
        (self.pc, self.sp, self.rbp) = (pc, sp, bp);
    }

    /// Where the suspended code stands: program counter, stack pointer, frame pointer, rbx.
    #[must_use]
    pub fn registers(&self) -> [usize; 4] {
        [self.pc, self.sp, self.rbp, self.rbx]
    }
}

/// The first frame of every stack of ours.
///
/// In: rsp = a [`FrameOnStack`], rdx = the word that [`switch`] passes.
/// Out: calls `entry(data, rdx)`, which does not return.
/// Clobbered: everything.
///
/// # Safety
/// * Entered by [`switch`] alone, with a context that [`Context::fresh`] made.
#[cfg(not(gosched_asan))]
#[unsafe(naked)]
unsafe extern "C" fn first_frame() -> ! {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip", // the unwinder's end of stack
        "xor ebp, ebp",       // the frame-pointer chain's
        "mov rdi, [rsp + {data}]",
        "mov rsi, rdx",
        "call [rsp + {entry}]",
        "ud2",
        ".cfi_endproc",
        data = const offset_of!(FrameOnStack, data),
        entry = const offset_of!(FrameOnStack, entry),
    )
}

/// As above, and tells the sanitizer first.
///
/// # Safety
/// * As above.
#[cfg(gosched_asan)]
#[unsafe(naked)]
unsafe extern "C" fn first_frame() -> ! {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "xor ebp, ebp",
        "mov rbx, rdx",
        "call {arrived}",
        "mov rdi, [rsp + {data}]",
        "mov rsi, rbx",
        "call [rsp + {entry}]",
        "ud2",
        ".cfi_endproc",
        arrived = sym sanitizer::arrive_first,
        data = const offset_of!(FrameOnStack, data),
        entry = const offset_of!(FrameOnStack, entry),
    )
}

/// Saves the running execution into `from` and resumes `to`; returns when somebody resumes `from`.
///
/// `pass` goes to the resumed side, where it is what *its* `switch` returns. FS is not touched:
/// the caller loads `to`'s block before, so that one write serves a switch.
///
/// In: rdi = from, rsi = to, rdx = pass. Out: rdx = what the resumer passed.
/// Clobbered: all of the C ABI's, and r12 to r15.
///
/// # Safety
/// * `to` was saved by `switch` or made by [`Context::fresh`], and was not resumed since.
/// * The caller owns both contexts until the switch, and nobody resumes `from` before this call
///   has saved it: publish it from the resumed side only.
/// * FS is already the one of `to`, and no thread-local is touched between its load and here.
#[inline(always)]
pub unsafe fn switch(from: *mut Context, to: *const Context, pass: usize) -> usize {
    let passed: usize;
    // SAFETY: see `control_words`; both contexts are the caller's.
    unsafe { control_words(from, to) };
    // SAFETY: as above; the switch follows.
    unsafe { sanitizer::leave(shadow_of(from), shadow_of(to.cast_mut())) };
    // SAFETY: saves what I2 names, then goes on where `to` was saved, on its stack. The block
    // clobbers all registers that the compiler lets it.
    unsafe {
        asm!(
            "lea rax, [rip + 2f]",
            "mov [rdi + {sp}], rsp",
            "mov [rdi + {pc}], rax",
            "mov [rdi + {rbx}], rbx",
            "mov [rdi + {rbp}], rbp",
            "mov rbx, [rsi + {rbx}]",
            "mov rbp, [rsi + {rbp}]",
            "mov rsp, [rsi + {sp}]",
            "jmp [rsi + {pc}]",
            "2:",
            sp = const offset_of!(Context, sp),
            pc = const offset_of!(Context, pc),
            rbx = const offset_of!(Context, rbx),
            rbp = const offset_of!(Context, rbp),
            inout("rdi") from => _,
            inout("rsi") to => _,
            inout("rdx") pass => passed,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            clobber_abi("sysv64"),
        );
    }
    // SAFETY: resumed just now.
    unsafe { sanitizer::arrive(shadow_of(from)) };
    passed
}

#[inline(always)]
fn shadow_of(context: *mut Context) -> *mut Shadow {
    context.wrapping_byte_add(offset_of!(Context, shadow)).cast()
}

/// Saves the control words of `from` and loads those of `to` where they differ (I3).
///
/// # Safety
/// * Both pointers are valid, and nobody else uses the contexts meanwhile.
#[inline(always)]
unsafe fn control_words(from: *mut Context, to: *const Context) {
    // SAFETY: stores two control words into the caller's context.
    unsafe {
        asm!(
            "stmxcsr [{from} + {mxcsr}]",
            "fnstcw [{from} + {fpucw}]",
            from = in(reg) from,
            mxcsr = const offset_of!(Context, mxcsr),
            fpucw = const offset_of!(Context, fpucw),
            options(nostack, preserves_flags),
        );
    }
    if keys::are_in_use() {
        // SAFETY: valid by the caller.
        let wanted = unsafe { (*to).pkru };
        // SAFETY: they are in use; the scheduler touches no page with a key of the program's.
        let pkru = unsafe { keys::exchange(wanted) };
        // SAFETY: valid by the caller.
        unsafe { (*from).pkru = pkru };
    }
    // SAFETY: valid by the caller.
    let from = unsafe { &*from };
    // SAFETY: as above.
    let to = unsafe { &*to };
    if from.mxcsr != to.mxcsr {
        load_mxcsr(to);
    }
    if from.fpucw != to.fpucw {
        load_fpucw(to);
    }
}

#[cold]
fn load_mxcsr(context: &Context) {
    let at = &raw const context.mxcsr;
    // SAFETY: the word was stored by the CPU, or is the ABI's default: no reserved bits are set.
    unsafe { asm!("ldmxcsr [{}]", in(reg) at, options(nostack, preserves_flags, readonly)) };
}

#[cold]
fn load_fpucw(context: &Context) {
    let at = &raw const context.fpucw;
    // SAFETY: the word was stored by the CPU, or is the ABI's default.
    unsafe { asm!("fldcw [{}]", in(reg) at, options(nostack, preserves_flags, readonly)) };
}

/// The stack pointer, about.
#[inline(always)]
#[must_use]
pub fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: copies a register.
    unsafe { asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}

/// Whether the kernel lets user code read and write FS and GS (bit 1 of AT_HWCAP2, Linux 5.9).
#[must_use]
pub fn has_fsgsbase() -> bool {
    const HWCAP2_FSGSBASE: u64 = 2;
    // SAFETY: getauxval only reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & HWCAP2_FSGSBASE != 0 }
}

/// Reads FS, the address of the loaded thread-local block.
///
/// # Safety
/// * [`has_fsgsbase`] is true.
#[inline(always)]
#[must_use]
pub unsafe fn fs_base() -> usize {
    let base: usize;
    // SAFETY: reads a register; the instruction exists by the caller's promise.
    unsafe { asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}

/// Loads FS.
///
/// # Safety
/// * [`has_fsgsbase`] is true.
/// * `base` is a complete thread-local block, and the compiler must hold no thread-local address
///   across this call: it runs in code that touches none.
#[inline(always)]
pub unsafe fn set_fs_base(base: usize) {
    // SAFETY: by the caller. Not `nomem`: thread-locals read before and after may differ.
    unsafe { asm!("wrfsbase {}", in(reg) base, options(nostack, preserves_flags)) };
}

/// Reads GS, where a machine keeps the address of its own record. 0 on plain threads.
///
/// # Safety
/// * [`has_fsgsbase`] is true.
#[inline(always)]
#[must_use]
pub unsafe fn gs_base() -> usize {
    let base: usize;
    // SAFETY: reads a register. Not `pure`: after a switch another thread may run this code.
    unsafe { asm!("rdgsbase {}", out(reg) base, options(nostack, preserves_flags)) };
    base
}

/// Sets the `u32` at `OFFSET` from GS to 1 and returns the word at GS itself.
///
/// # Safety
/// * GS points at a record whose first word is its own address, with a `u32` at `OFFSET`.
#[inline(always)]
#[must_use]
pub unsafe fn mark_gs<const OFFSET: usize>() -> usize {
    let base: usize;
    // SAFETY: by the caller.
    unsafe {
        asm!(
            "mov dword ptr gs:[{offset}], 1",
            "mov {base}, gs:[0]",
            offset = const OFFSET,
            base = out(reg) base,
            options(nostack, preserves_flags),
        );
    }
    base
}

/// Reads the word at `OFFSET` from GS.
///
/// # Safety
/// * GS points at a record with a word at `OFFSET`.
#[inline(always)]
#[must_use]
pub unsafe fn load_gs<const OFFSET: usize>() -> usize {
    let word: usize;
    // SAFETY: by the caller.
    unsafe {
        asm!(
            "mov {word}, gs:[{offset}]",
            offset = const OFFSET,
            word = out(reg) word,
            options(nostack, preserves_flags, readonly),
        );
    }
    word
}

/// Loads GS.
///
/// # Safety
/// * [`has_fsgsbase`] is true.
/// * Nothing else on this thread uses GS.
pub unsafe fn set_gs_base(base: usize) {
    // SAFETY: by the caller.
    unsafe { asm!("wrgsbase {}", in(reg) base, options(nostack, preserves_flags)) };
}

const ARCH_SET_GS: usize = 0x1001;
const ARCH_SET_FS: usize = 0x1002;
const ARCH_GET_GS: usize = 0x1004;

/// [`fs_base`] where the instruction is missing: the first word of a block is its own address
/// (`tcbhead_t`'s `tcb`, which the ABI asks for).
#[must_use]
pub fn fs_base_by_block() -> usize {
    let base: usize;
    // SAFETY: every thread has a block. Not `pure`: after a switch another block may be loaded.
    unsafe { asm!("mov {}, fs:[0]", out(reg) base, options(nostack, preserves_flags, readonly)) };
    base
}

/// [`gs_base`] where the instruction is missing.
#[must_use]
pub fn gs_base_by_syscall() -> usize {
    let mut base = 0_usize;
    let args = [ARCH_GET_GS, &raw mut base as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes one word, which is ours.
    let _ = unsafe { gosched_base::os::syscall(libc::SYS_arch_prctl, args) };
    base
}

/// [`set_fs_base`] where the instruction is missing.
///
/// # Safety
/// * As for [`set_fs_base`], but for the instruction.
pub unsafe fn set_fs_base_by_syscall(base: usize) {
    // SAFETY: by the caller.
    let _ =
        unsafe { gosched_base::os::syscall(libc::SYS_arch_prctl, [ARCH_SET_FS, base, 0, 0, 0, 0]) };
}

/// [`set_gs_base`] where the instruction is missing.
///
/// # Safety
/// * Nothing else on this thread uses GS.
pub unsafe fn set_gs_base_by_syscall(base: usize) {
    // SAFETY: by the caller.
    let _ =
        unsafe { gosched_base::os::syscall(libc::SYS_arch_prctl, [ARCH_SET_GS, base, 0, 0, 0, 0]) };
}
