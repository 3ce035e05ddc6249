//! What the process uses, as the kernel counts it.

use std::fs;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Resident bytes now.
pub(crate) fn rss_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("/proc is mounted");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second field of statm is a number") * 4096
}

/// The most that was ever resident. (`getrusage` starts with the parent's figure at exec.)
pub(crate) fn peak_rss_kb() -> u64 {
    kb_field("/proc/self/status", "VmHWM:")
}

/// What the machine could still give to processes.
pub(crate) fn available_bytes() -> u64 {
    kb_field("/proc/meminfo", "MemAvailable:") * 1024
}

/// The kernel's number of the calling thread.
pub(crate) fn thread_id() -> i32 {
    // SAFETY: no memory is passed.
    unsafe { libc::gettid() }
}

/// The field of a file of lines such as `VmHWM:  6836 kB`.
fn kb_field(path: &str, field: &str) -> u64 {
    let text = fs::read_to_string(path).expect("/proc is mounted");
    let value = text.lines().find_map(|line| line.strip_prefix(field));
    let kb = value.and_then(|value| value.trim().trim_end_matches(" kB").parse().ok());
    kb.expect("the field is a number of kB")
}

/// CPU time and context switches of all threads since the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) voluntary: i64,
    pub(crate) involuntary: i64,
}

impl Usage {
    pub(crate) fn now() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a whole `rusage`, which lives until the call returns.
        let done = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
        assert_eq!(done, 0, "getrusage of the own process");
        // SAFETY: the call filled it, and all zeroes are a valid `rusage` too.
        let usage = unsafe { usage.assume_init() };
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1_000);
        Usage {
            cpu: time(usage.ru_utime) + time(usage.ru_stime),
            voluntary: usage.ru_nvcsw,
            involuntary: usage.ru_nivcsw,
        }
    }
}
