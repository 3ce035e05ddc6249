//! What differs from CPU to CPU: the switch, the first frame, and the thread registers.
//!
//! A port is a new file with the same list of names.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{
    Context, FrameOnStack, counter, fs_base, fs_base_by_block, gs_base, gs_base_by_syscall,
    has_fsgsbase, has_protection_keys, jump_by_caller, load_gs, mark_gs, peek, preempt,
    prefetch_suspended, prefetch_through, set_fs_base, set_fs_base_by_syscall, set_gs_base,
    set_gs_base_by_syscall, stack_pointer, switch, use_protection_keys,
};

#[cfg(not(target_arch = "x86_64"))]
compile_error!("gosched runs on x86-64 only, so far; a port begins with crates/fiber/src/arch");
