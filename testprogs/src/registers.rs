//! Everything that a CPU's registers can hold, kept in them for a while by a leaf function.
//!
//! [`Held::keep`] loads what is in the record into the registers, counts down, and writes back what
//! the registers hold then. Code that was stopped and went on, on any thread, finds all unchanged.

use crate::random::Random;
use std::arch::naked_asm;
use std::mem::offset_of;

/// What is kept in registers; the widest vectors that the CPU has.
#[repr(C, align(64))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// 32 of 512 bits, or 16 of 256 or 128 bits; the rest is zero.
    pub vectors: [[u64; 8]; 32],
    /// Mask registers, where vectors have 512 bits; else zero.
    pub masks: [u64; 8],
    /// All but rcx, which counts, and rsp.
    pub general: [u64; 14],
    /// The 128 bytes below the stack pointer.
    pub red_zone: [u64; 16],
    /// A full x87 stack.
    pub x87: [i64; 8],
    /// EFLAGS.
    pub flags: u64,
    /// Rounding, masks and sticky flags of vector arithmetic.
    pub mxcsr: u32,
    /// The x87 control word.
    pub x87_control: u32,
}

/// CF, PF, AF, ZF, SF, DF and OF. (Not ID, which the kernel does not restore after a handler.)
pub const FLAGS_ANY: u64 = 0x0cd5;
/// Alignment checks: with it, memory must be accessed aligned.
pub const FLAG_AC: u64 = 0x4_0000;

impl Held {
    /// Random contents for this CPU, EFLAGS among those that `flags` has.
    #[must_use]
    pub fn random(random: &mut Random, flags: u64) -> Held {
        let width = Width::of_this_cpu();
        let mut words = |used: bool| if used { random.bits() } else { 0 };
        let mut vectors = [[0; 8]; 32];
        for vector in vectors.iter_mut().take(width.count()) {
            vector.iter_mut().take(width.words()).for_each(|word| *word = words(true));
        }
        let masks = [(); 8].map(|()| words(matches!(width, Width::Avx512)));
        let general = [(); 14].map(|()| words(true));
        let red_zone = [(); 16].map(|()| words(true));
        let x87 = [(); 8].map(|()| words(true) as i64);
        let rounding = words(true) as u32;
        Held {
            vectors,
            masks,
            general,
            red_zone,
            x87,
            flags: 0x202 | words(true) & flags,
            // All exceptions masked; rounding, flush to zero, zero for denormals, sticky flags.
            mxcsr: 0x1f80 | rounding & 0xe07f,
            // All exceptions masked; precision and rounding.
            x87_control: 0x7f | [0, 0x200, 0x300][rounding as usize % 3] | (rounding >> 8 & 0xc00),
        }
    }

    /// Keeps the contents in the registers for `rounds` rounds of some CPU cycles, then stores what
    /// is in the registers.
    pub fn keep(&mut self, rounds: u64) {
        let keep = match Width::of_this_cpu() {
            Width::Sse => keep_sse,
            Width::Avx => keep_avx,
            Width::Avx512 => keep_avx512,
        };
        // SAFETY: the CPU has these registers, and the record is whole.
        unsafe { keep(self, rounds.max(1)) };
    }
}

#[derive(Clone, Copy)]
enum Width {
    Sse,
    Avx,
    Avx512,
}

impl Width {
    fn of_this_cpu() -> Width {
        if is_x86_feature_detected!("avx512bw") {
            Width::Avx512
        } else if is_x86_feature_detected!("avx") {
            Width::Avx
        } else {
            Width::Sse
        }
    }

    fn count(self) -> usize {
        if matches!(self, Width::Avx512) { 32 } else { 16 }
    }

    fn words(self) -> usize {
        match self {
            Width::Sse => 2,
            Width::Avx => 4,
            Width::Avx512 => 8,
        }
    }
}

macro_rules! keep {
    ($name:ident, load: [$($load:literal),*], store: [$($store:literal),*], clean: $clean:literal) => {
        /// In: rdi = the record, rsi = rounds, at least 1. Out: the record as it is now.
        ///
        /// # Safety
        /// * The CPU has the registers.
        #[unsafe(naked)]
        unsafe extern "C" fn $name(held: *mut Held, rounds: u64) {
            naked_asm!(
                ".irp r, rbx, rbp, r12, r13, r14, r15",
                "push \\r",
                ".endr",
                "sub rsp, 16",
                "stmxcsr [rsp]",
                "fnstcw [rsp + 4]",
                "push rdi",
                "mov rcx, rsi",
                $($load,)*
                "ldmxcsr [rdi + {mxcsr}]",
                "fninit",
                "fldcw [rdi + {control}]",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7",
                "fild qword ptr [rdi + {x87} + 8 * \\n]",
                ".endr",
                "push qword ptr [rdi + {flags}]",
                "popfq",
                // Nothing from here to the end of the loop changes the flags.
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "mov rax, [rdi + {red} + 8 * \\n]",
                "mov [rsp - 8 - 8 * \\n], rax",
                ".endr",
                "mov rax, [rdi + {general}]",
                "mov rbx, [rdi + {general} + 8]",
                "mov rdx, [rdi + {general} + 16]",
                "mov rsi, [rdi + {general} + 24]",
                "mov rbp, [rdi + {general} + 32]",
                ".irp n, 8, 9, 10, 11, 12, 13, 14, 15",
                "mov r\\n, [rdi + {general} + 8 * \\n - 24]",
                ".endr",
                "mov rdi, [rdi + {general} + 104]",
                "2:",
                "lea rcx, [rcx - 1]",
                "jrcxz 3f",
                "jmp 2b",
                "3:",
                "mov rcx, [rsp]",
                "mov [rcx + {general}], rax",
                "mov [rcx + {general} + 8], rbx",
                "mov [rcx + {general} + 16], rdx",
                "mov [rcx + {general} + 24], rsi",
                "mov [rcx + {general} + 32], rbp",
                ".irp n, 8, 9, 10, 11, 12, 13, 14, 15",
                "mov [rcx + {general} + 8 * \\n - 24], r\\n",
                ".endr",
                "mov [rcx + {general} + 104], rdi",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "mov rax, [rsp - 8 - 8 * \\n]",
                "mov [rcx + {red} + 8 * \\n], rax",
                ".endr",
                "pushfq",
                "pop qword ptr [rcx + {flags}]",
                "push 0x202",
                "popfq",
                $($store,)*
                "stmxcsr [rcx + {mxcsr}]",
                "fnstcw [rcx + {control}]",
                ".irp n, 7, 6, 5, 4, 3, 2, 1, 0",
                "fistp qword ptr [rcx + {x87} + 8 * \\n]",
                ".endr",
                "fninit",
                $clean,
                "pop rdi",
                "ldmxcsr [rsp]",
                "fldcw [rsp + 4]",
                "add rsp, 16",
                ".irp r, r15, r14, r13, r12, rbp, rbx",
                "pop \\r",
                ".endr",
                "ret",
                vectors = const offset_of!(Held, vectors),
                masks = const offset_of!(Held, masks),
                general = const offset_of!(Held, general),
                red = const offset_of!(Held, red_zone),
                x87 = const offset_of!(Held, x87),
                flags = const offset_of!(Held, flags),
                mxcsr = const offset_of!(Held, mxcsr),
                control = const offset_of!(Held, x87_control),
            )
        }
    };
}

keep! {
    keep_sse,
    load: [
        "/* {masks} */ .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
        "movdqu xmm\\n, [rdi + {vectors} + 64 * \\n]",
        ".endr"
    ],
    store: [
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
        "movdqu [rcx + {vectors} + 64 * \\n], xmm\\n",
        ".endr"
    ],
    clean: ""
}

keep! {
    keep_avx,
    load: [
        "/* {masks} */ .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
        "vmovdqu ymm\\n, [rdi + {vectors} + 64 * \\n]",
        ".endr"
    ],
    store: [
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
        "vmovdqu [rcx + {vectors} + 64 * \\n], ymm\\n",
        ".endr"
    ],
    clean: "vzeroupper"
}

keep! {
    keep_avx512,
    load: [
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
        "vmovdqu64 zmm\\n, [rdi + {vectors} + 64 * \\n]",
        ".endr",
        ".irp n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
        "vmovdqu64 zmm\\n, [rdi + {vectors} + 64 * \\n]",
        ".endr",
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7",
        "kmovq k\\n, [rdi + {masks} + 8 * \\n]",
        ".endr"
    ],
    store: [
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
        "vmovdqu64 [rcx + {vectors} + 64 * \\n], zmm\\n",
        ".endr",
        ".irp n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
        "vmovdqu64 [rcx + {vectors} + 64 * \\n], zmm\\n",
        ".endr",
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7",
        "kmovq [rcx + {masks} + 8 * \\n], k\\n",
        ".endr"
    ],
    clean: "vzeroupper"
}

#[cfg(test)]
mod tests {
    use super::{FLAGS_ANY, Held};
    use crate::random::Random;

    #[test]
    fn what_is_kept_comes_back() {
        let mut random = Random::new(7);
        for _ in 0..1000 {
            let before = Held::random(&mut random, FLAGS_ANY);
            let mut after = before.clone();
            after.keep(1 + random.below(100));
            assert_eq!(after, before);
        }
    }

    #[test]
    fn what_is_kept_is_the_registers() {
        let mut held = Held::random(&mut Random::new(8), FLAGS_ANY);
        held.mxcsr = 0x1f80 | 1 << 13;
        held.keep(1);
        // The function left no rounding mode behind: 1/3 is nearest.
        assert_eq!(std::hint::black_box(1.0_f64) / 3.0, 1.0 / 3.0);
    }
}
