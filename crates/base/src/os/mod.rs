//! Thin wrappers of system calls.
//!
//! A port is a new folder beside `linux`.

#[cfg(not(target_os = "linux"))]
compile_error!("gosched runs on Linux only, so far; a port begins with crates/base/src/os");

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::{
    Errno, affinity, exit_group, futex_wait, futex_wait_until, futex_wake, getpid, gettid,
    is_thread, map_zeroed, monotonic_ns, queued_word, read_at, set_affinity, syscall, tgsigqueue,
    write_all, yield_cpu,
};
