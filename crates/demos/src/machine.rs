//! What the system says of this process.

use std::fs;

/// Memory that is really there, in bytes; 0 if the system does not say.
pub(crate) fn resident_bytes() -> u64 {
    number("/proc/self/status", "VmRSS:") * 1024
}

/// Memory that can be had, in bytes; without end if the system does not say.
pub(crate) fn available_bytes() -> u64 {
    match number("/proc/meminfo", "MemAvailable:") {
        0 => u64::MAX,
        kb => kb * 1024,
    }
}

/// How often the kernel took a CPU from a thread of this process that wanted to go on.
pub(crate) fn involuntary_switches() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().filter_map(Result::ok);
    let paths = tasks.filter_map(|task| task.path().join("status").to_str().map(str::to_owned));
    paths.map(|path| number(&path, "nonvoluntary_ctxt_switches:")).sum()
}

/// The thread that this is called on.
pub(crate) fn thread_id() -> Option<String> {
    let link = fs::read_link("/proc/thread-self").ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}

fn number(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
