//! Functions whose answer depends on who calls them.

/// Defines the C function `$name` of two arguments that goes on, as if by a jump, in the function
/// whose address `$choose(first, second, caller)` returns. What it jumps to sees the caller's own
/// return address.
///
/// The caller writes its `# Safety` section: that of the functions it may go on in.
///
/// In: rdi, rsi = the arguments, [rsp] = the caller. Out: the same, at the chosen function.
/// Clobbered: what the C ABI allows.
#[doc(hidden)]
#[macro_export]
macro_rules! __jump_by_caller {
    ($(#[$attribute:meta])* $name:ident, $choose:path) => {
        $(#[$attribute])*
        // # Safety: in the attributes, by the macro's user.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_def_cfa_offset 16",
                "push rsi",
                ".cfi_def_cfa_offset 24",
                "sub rsp, 8",
                ".cfi_def_cfa_offset 32",
                "mov rdx, [rsp + 24]",
                "call {choose}",
                "add rsp, 8",
                ".cfi_def_cfa_offset 24",
                "pop rsi",
                ".cfi_def_cfa_offset 16",
                "pop rdi",
                ".cfi_def_cfa_offset 8",
                "jmp rax",
                ".cfi_endproc",
                choose = sym $choose,
            )
        }
    };
}

pub use __jump_by_caller as jump_by_caller;
