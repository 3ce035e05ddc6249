//! From registers to frames.
//!
//! framehop follows the call-frame information. Three places are known here instead. What called the
//! trampoline of preemption and the kernel's signal frame stands at an instruction and not behind a call;
//! what called a further stack may lie below it, which framehop takes for the end. The first frame of a stack of ours ends a walk by its information, and so does a thread's.

use crate::memory::Memory;
use crate::modules::{self, Unwinds};
use crate::scratch::{self, Scratch};
use framehop::x86_64::UnwindRegsX86_64;
use framehop::{FrameAddress, Unwinder};
use gosched_fiber::arch::preempt;
use gosched_fiber::stack;
use std::arch::asm;

/// More frames than that are left out. Go's default for profiles.
pub const FRAMES_MAX: usize = 128;

/// Where code stands: what a walk begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The program counter.
    pub pc: usize,
    /// The stack pointer.
    pub sp: usize,
    /// The frame pointer, rbp.
    pub bp: usize,
}

/// Addresses of frames, the innermost first.
///
/// Each is a return address, as Go has it: one more than an address in the call. For code that was
/// interrupted, whose address is exact, one is added too. [`symbols`](crate::symbols) subtracts it.
#[derive(Clone, Debug)]
pub struct Frames {
    pcs: [usize; FRAMES_MAX],
    count: usize,
    is_cut: bool,
}

impl Frames {
    /// None.
    #[must_use]
    pub const fn new() -> Frames {
        Frames { pcs: [0; FRAMES_MAX], count: 0, is_cut: false }
    }

    /// The addresses.
    #[must_use]
    pub fn pcs(&self) -> &[usize] {
        &self.pcs[..self.count]
    }

    /// Whether there were more than fit.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// False if it is full.
    fn push(&mut self, address: FrameAddress) -> bool {
        self.is_cut = self.count == FRAMES_MAX;
        if let Some(pc) = self.pcs.get_mut(self.count) {
            *pc = (address.address_for_lookup() as usize).wrapping_add(1);
            self.count += 1;
        }
        !self.is_cut
    }
}

impl Default for Frames {
    fn default() -> Frames {
        Frames::new()
    }
}

/// Finds the frames of code that stands at `registers`. Signal-safe; see the crate's page.
///
/// False: nothing is [`prepare`](crate::prepare)d, or too many walk at the same time; then there is only
/// the first one.
#[inline]
pub fn walk(registers: Registers, frames: &mut Frames) -> bool {
    (frames.count, frames.is_cut) = (0, false);
    let Some((table, mut scratch)) = modules::table().zip(scratch::take()) else {
        frames.push(FrameAddress::from_instruction_pointer(registers.pc as u64));
        return false;
    };
    walk_with(&table.unwinder, &mut scratch, registers, frames);
    true
}

/// As [`walk()`], on a stack of its own: a handler on a thread that others made may have little.
pub fn walk_apart(registers: Registers, frames: &mut Frames) -> bool {
    (frames.count, frames.is_cut) = (0, false);
    if let Some((table, mut scratch)) = modules::table().zip(scratch::take())
        && let Some(mut stack) = scratch.stack.take()
    {
        stack::call_on(&mut stack, || walk_with(&table.unwinder, &mut scratch, registers, frames));
        scratch.stack = Some(stack);
        return true;
    }
    frames.push(FrameAddress::from_instruction_pointer(registers.pc as u64));
    false
}

/// The caller's own frames, the caller first.
///
/// ```
/// gosched_unwind::prepare();
/// let mut frames = gosched_unwind::Frames::new();
/// assert!(gosched_unwind::here(&mut frames));
/// assert!(frames.pcs().len() > 1);
/// ```
#[inline(always)]
pub fn here(frames: &mut Frames) -> bool {
    let (pc, sp, bp);
    // SAFETY: copies three registers.
    unsafe {
        asm!(
            "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
            out(reg) pc, out(reg) sp, out(reg) bp,
            options(nomem, nostack, preserves_flags),
        );
    }
    walk(Registers { pc, sp, bp }, frames)
}

fn walk_with(unwinder: &Unwinds, scratch: &mut Scratch, from: Registers, frames: &mut Frames) {
    let mut memory = Memory::around(from.sp, &mut scratch.window);
    let mut registers = UnwindRegsX86_64::new(from.pc as u64, from.sp as u64, from.bp as u64);
    let mut address = FrameAddress::from_instruction_pointer(from.pc as u64);
    loop {
        let pc = address.address() as usize;
        // What a handler returns to is no function of anybody's.
        if pc != modules::restorer() && !frames.push(address) {
            return;
        }
        if let Some(at) = interrupted(pc, &registers, &mut memory) {
            registers = UnwindRegsX86_64::new(at.pc as u64, at.sp as u64, at.bp as u64);
            address = FrameAddress::from_instruction_pointer(at.pc as u64);
            continue;
        }
        let bp = registers.bp() as usize;
        if let Some([pc, sp, bp]) = stack::before_switch(pc, bp, |at| memory.read(at)) {
            let Some(next) = FrameAddress::from_return_address(pc as u64) else { return };
            registers = UnwindRegsX86_64::new(pc as u64, sp as u64, bp as u64);
            address = next;
            continue;
        }
        let mut read = |at: u64| memory.read(at as usize).ok_or(());
        let found = unwinder.unwind_frame(address, &mut registers, &mut scratch.cache, &mut read);
        let Ok(Some(pc)) = found else { return };
        match FrameAddress::from_return_address(pc) {
            Some(next) if pc > PAGE => address = next,
            _ => return,
        }
    }
}

/// No code lies in the first page.
const PAGE: u64 = 4096;

/// Where the kernel's record of the interrupted code, to which the stack pointer points when the handler
/// has returned, has rbp, rsp and rip: `uc_mcontext` at 40, registers of 8 bytes by number.
const RECORD_BP: usize = 40 + 8 * libc::REG_RBP as usize;
const RECORD_SP: usize = 40 + 8 * libc::REG_RSP as usize;
const RECORD_PC: usize = 40 + 8 * libc::REG_RIP as usize;

/// What was interrupted, if `pc` is in the trampoline, or where a signal handler returns to.
#[inline]
fn interrupted(
    pc: usize,
    registers: &UnwindRegsX86_64,
    memory: &mut Memory<'_>,
) -> Option<Registers> {
    if pc == modules::restorer() {
        let record = registers.sp() as usize;
        let mut read = |at: usize| Some(memory.read(record.checked_add(at)?)? as usize);
        return Some(Registers {
            pc: read(RECORD_PC)?,
            sp: read(RECORD_SP)?,
            bp: read(RECORD_BP)?,
        });
    }
    let bp = registers.bp() as usize;
    let [pc, sp, bp] = preempt::before_trampoline(pc, bp, |at| memory.read(at))?;
    Some(Registers { pc, sp, bp })
}
