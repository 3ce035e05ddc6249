//! Thin wrappers of system calls.
//!
//! A port is a new folder beside `linux`.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!(
    "gosched runs on Linux on x86-64 only, so far; a port begins with crates/base/src/os and \
     crates/fiber/src/arch"
);

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod linux;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use linux::{
    Errno, affinity, exit_group, futex_wait, futex_wait_until, futex_wake, getpid, gettid,
    is_thread, map_zeroed, monotonic_ns, queued_word, read_at, set_affinity, syscall, tgsigqueue,
    write_all, yield_cpu,
};
