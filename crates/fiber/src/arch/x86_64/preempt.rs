//! Stopping code between any two instructions: the interrupted state, and the trampoline.
//!
//! A signal handler rewrites the interrupted context so that, when the kernel returns from the
//! signal, the code seems to have called [`trampoline`] right where it was. The trampoline saves
//! everything, calls the scheduler, and goes back as if nothing had happened, perhaps on another
//! thread.
//!
//! ```text
//!   interrupted sp -> +---------------------------+
//!                     | red zone (128 bytes)      |   may hold live data of a leaf function
//!                     +---------------------------+
//!   new sp ---------> | interrupted pc            |   as if pushed by a call
//!                     | rbp  <- rbp               |   the frame-pointer chain goes on
//!                     | eflags                    |   written by the handler: the CPU's are reset
//!                     | rax ... r15 (14 words)    |
//!                     | xsave area, 64-aligned    |   all of XCR0, size from CPUID
//!                     +---------------------------+
//! ```
//!
//! Where there is no alternate signal stack (the kernel refuses it, or who ends the process has given
//! his up) the kernel's own frame lies on the same stack, right below the red zone, and ends with the
//! vector state that it restores after the handler. The two words would be written into that. So the
//! handler leaves them in the part of the frame that describes the signal, which nobody reads after it,
//! and the code goes to [`trampoline_above_frame`] first, which brings them to their place.
//!
//! Invariants
//! * I1. The scheduler never runs under the interrupted code's vector, x87, MXCSR or protection-key
//!   state: after saving, the CPU's initial state is loaded. (Without it the next goroutine computed
//!   1 + 1 = NaN on a full x87 stack.)
//! * I2. The interrupted EFLAGS are in the frame, and the context's are reset: AC, NT or DF of user
//!   code must not reach the scheduler.
//! * I3. The unwinder sees a signal frame at the interrupted pc: no return address is adjusted.

use super::keys;
use crate::stack;
use std::arch::naked_asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes below the stack pointer that a leaf function may use (System V ABI).
const RED_ZONE: usize = 128;
/// IF and the reserved bit that is always 1.
const EFLAGS_CLEAN: i64 = 0x202;
/// `syscall`, as it lies in memory.
const SYSCALL_INSTRUCTION: u16 = 0x050f;
/// The protection-key component of XCR0.
const XSTATE_PKRU: u64 = 1 << 9;

/// Bytes of an XSAVEC area with all components; 0 until [`init`].
static XSAVE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// All components, low and high half.
static SAVE_MASK: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
/// All but protection keys: what is set to its initial state for the scheduler.
static RESET_MASK: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
/// Whether the kernel has switched protection keys on.
static HAS_PKRU: AtomicU32 = AtomicU32::new(0);
/// PKRU as the process started with it.
static PKRU_START: AtomicU32 = AtomicU32::new(0);
/// What the trampoline calls: an `extern "C" fn()`.
static PARK: AtomicUsize = AtomicUsize::new(0);

/// An XSAVE area that says: every component is in its initial state.
#[repr(C, align(64))]
struct InitialState {
    /// The legacy area; only the x87 control word and MXCSR matter.
    legacy: [u8; 512],
    xstate_bv: AtomicU64,
    xcomp_bv: AtomicU64,
    reserved: [u64; 6],
}

const fn legacy_area() -> [u8; 512] {
    let mut area = [0; 512];
    // x87 control word 0x037f at 0, MXCSR 0x1f80 at 24.
    area[0] = 0x7f;
    area[1] = 0x03;
    area[24] = 0x80;
    area[25] = 0x1f;
    area
}

static INITIAL: InitialState = InitialState {
    legacy: legacy_area(),
    xstate_bv: AtomicU64::new(0),
    xcomp_bv: AtomicU64::new(1 << 63),
    reserved: [0; 6],
};

/// Finds the size of the CPU's state and registers what the trampoline calls. False: this CPU has
/// no XSAVEC, and code can't be stopped in place.
pub fn init(park: extern "C" fn()) -> bool {
    const OSXSAVE: u32 = 1 << 27;
    const XSAVEC: u32 = 1 << 1;
    if __cpuid(1).ecx & OSXSAVE == 0 || __cpuid_count(0xd, 1).eax & XSAVEC == 0 {
        return false;
    }
    // SAFETY: OSXSAVE says that XGETBV exists.
    let components = unsafe { xcr0() };
    let has_pkru = keys::has_protection_keys();
    // ORDERING: Relaxed for all; code is stopped only after this, by signals sent later.
    XSAVE_BYTES.store(__cpuid_count(0xd, 1).ebx as usize, Relaxed);
    store_mask(&SAVE_MASK, components);
    store_mask(&RESET_MASK, components & !XSTATE_PKRU);
    HAS_PKRU.store(u32::from(has_pkru), Relaxed);
    if has_pkru {
        // SAFETY: OSPKE says that RDPKRU exists.
        PKRU_START.store(unsafe { keys::read() }, Relaxed);
    }
    PARK.store(park as *const () as usize, Relaxed);
    true
}

/// # Safety
/// * The CPU has OSXSAVE.
#[target_feature(enable = "xsave")]
unsafe fn xcr0() -> u64 {
    // SAFETY: by the caller.
    unsafe { _xgetbv(0) }
}

fn store_mask(mask: &[AtomicU32; 2], components: u64) {
    // ORDERING: Relaxed for both; see `init`.
    mask[0].store(components as u32, Relaxed);
    mask[1].store((components >> 32) as u32, Relaxed);
}

/// Bytes of stack that a redirect needs below the interrupted stack pointer, the scheduler's
/// frames included.
#[must_use]
pub fn stack_bytes_needed() -> usize {
    // ORDERING: Relaxed; see `init`.
    XSAVE_BYTES.load(Relaxed) + 8192
}

unsafe extern "C" {
    /// The address behind the trampoline.
    #[link_name = "__gosched_trampoline_end"]
    static TRAMPOLINE_END: u8;
    /// The address behind the one that comes first.
    #[link_name = "__gosched_trampoline_above_frame_end"]
    static TRAMPOLINE_ABOVE_FRAME_END: u8;
}

/// Whether `pc` lies in a trampoline itself.
#[must_use]
pub fn is_in_trampoline(pc: usize) -> bool {
    let first = trampoline_above_frame as *const () as usize;
    is_in_main_trampoline(pc)
        || (first..(&raw const TRAMPOLINE_ABOVE_FRAME_END).addr()).contains(&pc)
}

fn is_in_main_trampoline(pc: usize) -> bool {
    let start = trampoline as *const () as usize;
    (start..(&raw const TRAMPOLINE_END).addr()).contains(&pc)
}

/// What the trampoline has interrupted, if code stands at `pc` in it with this frame pointer: where that
/// goes on, and its stack and frame pointers. `read` tells the word at an address of the stack.
pub fn before_trampoline(
    pc: usize,
    bp: usize,
    mut read: impl FnMut(usize) -> Option<u64>,
) -> Option<[usize; 3]> {
    /// `push rbp; mov rbp, rsp`.
    const PROLOGUE: usize = 4;
    let start = trampoline as *const () as usize;
    if !is_in_main_trampoline(pc) || pc < start + PROLOGUE {
        return None;
    }
    let interrupted = read(bp.checked_add(size_of::<usize>())?)? as usize;
    let sp = bp.checked_add(2 * size_of::<usize>() + RED_ZONE)?;
    Some([interrupted, sp, read(bp)? as usize])
}

/// Switches EFLAGS.AC off, which the kernel leaves on for handlers: with it the CPU refuses what
/// compiled code takes for granted, unaligned accesses. The end of the handler brings it back.
#[inline(always)]
pub fn forget_alignment_checks() {
    // SAFETY: a word is pushed and popped; no other flag changes that the compiler relies on.
    unsafe { std::arch::asm!("pushfq", "btr dword ptr [rsp], 18", "popfq") };
}

/// The interrupted context, as a signal handler gets it.
#[derive(Debug)]
pub struct Interrupted<'a> {
    context: &'a mut libc::ucontext_t,
}

impl<'a> Interrupted<'a> {
    /// # Safety
    /// * `context` is the third argument of the handler that runs.
    pub unsafe fn new(context: *mut std::ffi::c_void) -> Interrupted<'a> {
        // SAFETY: by the caller.
        Interrupted { context: unsafe { &mut *context.cast::<libc::ucontext_t>() } }
    }

    fn register(&mut self, which: i32) -> &mut i64 {
        &mut self.context.uc_mcontext.gregs[which as usize]
    }

    /// Where the code stands.
    #[must_use]
    pub fn pc(&self) -> usize {
        self.context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize
    }

    /// Its stack pointer.
    #[must_use]
    pub fn sp(&self) -> usize {
        self.context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
    }

    /// Where the code stands: program counter, stack pointer, frame pointer.
    #[must_use]
    pub fn position(&self) -> [usize; 3] {
        let bp = self.context.uc_mcontext.gregs[libc::REG_RBP as usize] as usize;
        [self.pc(), self.sp(), bp]
    }

    /// The signals that were blocked: those of a user's handler, if one runs.
    #[must_use]
    pub fn signal_mask(&self) -> u64 {
        let mask = (&raw const self.context.uc_sigmask).cast::<u64>();
        // SAFETY: the kernel's mask is the first eight bytes of libc's larger one.
        unsafe { mask.read() }
    }

    /// A system call that the kernel is about to restart by `restart_syscall` is made to fail with
    /// EINTR instead, as the kernel itself does at the end of a handler: what it would restart
    /// belongs to this kernel thread, and the code may go on on another. Whether there was one.
    pub fn forget_restart(&mut self) -> bool {
        let restarts =
            *self.register(libc::REG_RAX) == libc::SYS_restart_syscall && self.is_at_syscall();
        if restarts {
            *self.register(libc::REG_RAX) = i64::from(-libc::EINTR);
            *self.register(libc::REG_RIP) += 2;
        }
        restarts
    }

    /// Whether the next instruction is a system call.
    #[must_use]
    pub fn is_at_syscall(&self) -> bool {
        // SAFETY: the pc of code that ran; two readable bytes, since an instruction begins there
        // and a one-byte instruction at the very end of a mapping would be followed by nothing
        // executable.
        unsafe { (self.pc() as *const u16).read_unaligned() == SYSCALL_INSTRUCTION }
    }

    /// Whether the code is in a system call that the signal has ended: about to make it again, or
    /// just after it.
    #[must_use]
    pub fn is_in_syscall(&self) -> bool {
        self.is_at_syscall() || self.is_after_syscall()
    }

    fn is_after_syscall(&self) -> bool {
        const PAGE: usize = 4096;
        let pc = self.pc();
        // The page before may be none.
        let is_readable = pc % PAGE >= size_of::<u16>();
        // SAFETY: two bytes of the page in which the code runs.
        is_readable && unsafe { ((pc - 2) as *const u16).read_unaligned() } == SYSCALL_INSTRUCTION
    }

    /// Makes the code go to the trampoline when the handler returns. `info` is the handler's second
    /// argument, whose contents are gone then.
    ///
    /// # Safety
    /// * The stack below the interrupted stack pointer belongs to the interrupted goroutine, with
    ///   [`stack_bytes_needed`] bytes of room.
    /// * [`init`] returned true.
    /// * `info` is what the kernel passed to the handler that runs.
    pub unsafe fn redirect(&mut self, info: *mut libc::siginfo_t) {
        let (pc, eflags) = (self.pc(), *self.register(libc::REG_EFL));
        let new_sp = self.sp() - RED_ZONE - size_of::<usize>();
        *self.register(libc::REG_EFL) = EFLAGS_CLEAN;
        if self.is_on_this_stack() {
            // SAFETY: the description has 128 bytes; the kernel does not read them again, and what lies
            // below them is not needed either once the code goes on.
            let words = unsafe { &mut *info.wrapping_byte_add(PARKED_AT).cast::<[usize; 3]>() };
            *words = [new_sp, pc, eflags as usize];
            *self.register(libc::REG_RSP) = words.as_ptr().addr() as i64;
            *self.register(libc::REG_RIP) = trampoline_above_frame as *const () as i64;
            return;
        }
        // SAFETY: inside the stack, below the red zone, by the caller; the kernel's frame is elsewhere.
        unsafe { (new_sp as *mut usize).write(pc) };
        // SAFETY: two words further down; the trampoline leaves it there (see the drawing), and a
        // signal in between respects the red zone, in which it lies.
        unsafe { ((new_sp - 16) as *mut i64).write(eflags) };
        *self.register(libc::REG_RSP) = new_sp as i64;
        *self.register(libc::REG_RIP) = trampoline as *const () as i64;
    }

    /// Whether the handler runs on the stack of the code that it has interrupted.
    fn is_on_this_stack(&self) -> bool {
        let frame = (&raw const *self.context).addr();
        stack::slot_of(self.sp()).is_some_and(|slot| (slot.limit()..slot.top()).contains(&frame))
    }
}

/// Where in the description of a signal [`Interrupted::redirect`] leaves three words. There is room
/// for two below them.
const PARKED_AT: usize = 64;

/// What the redirected code runs first where the kernel's frame lies on its own stack.
///
/// In: at rsp the stack pointer for [`trampoline`], at rsp + 8 the interrupted pc, at rsp + 16 the
/// interrupted EFLAGS, all other registers as they were. Out: as [`trampoline`] wants it; no flag is
/// touched. The frame is above and no longer needed. A walk ends here, for these few instructions.
///
/// # Safety
/// * Entered by [`Interrupted::redirect`] only.
#[unsafe(naked)]
unsafe extern "C" fn trampoline_above_frame() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_signal_frame",
        ".cfi_undefined rip",
        "push rax",
        "push rcx",
        "mov rax, [rsp + 16]",
        "mov rcx, [rsp + 24]",
        "mov [rax], rcx",
        "mov rcx, [rsp + 32]",
        "mov [rax - 16], rcx",
        "mov rcx, [rsp + 8]",
        "mov [rax - 24], rcx", // rax, for a moment: in the red zone of the new stack pointer
        "mov rcx, [rsp]",
        "mov rsp, rax",
        "mov rax, [rsp - 24]",
        "jmp {trampoline}",
        ".cfi_endproc",
        ".globl __gosched_trampoline_above_frame_end",
        ".hidden __gosched_trampoline_above_frame_end",
        "__gosched_trampoline_above_frame_end:",
        trampoline = sym trampoline,
    )
}

/// What the redirected code runs first.
///
/// In: rsp = the interrupted pc, [rsp - 16] = the interrupted EFLAGS, all other registers as they
/// were. Out: all registers as they were, at the interrupted pc.
///
/// # Safety
/// * Entered by [`Interrupted::redirect`] only.
#[unsafe(naked)]
unsafe extern "C" fn trampoline() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_signal_frame",
        ".cfi_def_cfa rsp, 136", // pc and red zone
        ".cfi_offset rip, -136",
        "push rbp",
        ".cfi_def_cfa_offset 144",
        ".cfi_offset rbp, -144",
        "mov rbp, rsp",
        ".cfi_def_cfa rbp, 144",
        "sub rsp, 8", // the EFLAGS that the handler wrote
        "push rax",
        "push rbx",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        ".cfi_offset rax, -160",
        ".cfi_offset rbx, -168",
        ".cfi_offset rcx, -176",
        ".cfi_offset rdx, -184",
        ".cfi_offset rsi, -192",
        ".cfi_offset rdi, -200",
        ".cfi_offset r8, -208",
        ".cfi_offset r9, -216",
        ".cfi_offset r10, -224",
        ".cfi_offset r11, -232",
        ".cfi_offset r12, -240",
        ".cfi_offset r13, -248",
        ".cfi_offset r14, -256",
        ".cfi_offset r15, -264",
        "sub rsp, [rip + {bytes}]",
        "and rsp, -64",
        // XSAVEC leaves the header's reserved part alone, and XRSTOR wants it zero.
        "xor eax, eax",
        "mov [rsp + 512], rax",
        "mov [rsp + 520], rax",
        "mov [rsp + 528], rax",
        "mov [rsp + 536], rax",
        "mov [rsp + 544], rax",
        "mov [rsp + 552], rax",
        "mov [rsp + 560], rax",
        "mov [rsp + 568], rax",
        "mov eax, [rip + {save}]",
        "mov edx, [rip + {save} + 4]",
        "xsavec [rsp]",
        // I1.
        "mov eax, [rip + {reset}]",
        "mov edx, [rip + {reset} + 4]",
        "xrstor [rip + {initial}]",
        "cmp dword ptr [rip + {has_pkru}], 0",
        "je 2f",
        "mov eax, [rip + {pkru}]",
        "xor ecx, ecx",
        "xor edx, edx",
        "wrpkru",
        "2:",
        "call [rip + {park}]",
        "mov eax, [rip + {save}]",
        "mov edx, [rip + {save} + 4]",
        "xrstor [rsp]",
        "lea rsp, [rbp - 120]",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rbx",
        "pop rax",
        "popfq",
        "pop rbp",
        ".cfi_def_cfa rsp, 136",
        ".cfi_restore rbp",
        "ret 128",
        ".cfi_endproc",
        ".globl __gosched_trampoline_end",
        ".hidden __gosched_trampoline_end",
        "__gosched_trampoline_end:",
        bytes = sym XSAVE_BYTES,
        save = sym SAVE_MASK,
        reset = sym RESET_MASK,
        initial = sym INITIAL,
        has_pkru = sym HAS_PKRU,
        pkru = sym PKRU_START,
        park = sym PARK,
    )
}

#[cfg(test)]
mod tests;
