//! What this process has used, from `/proc`.

use std::time::Duration;

/// What the kernel calls USER_HZ: 100 on every platform that the runtime knows.
const TICK: Duration = Duration::from_millis(10);

/// CPU time of all threads together, in user code and in the kernel. Zero where `/proc` is missing.
pub(crate) fn cpu_time() -> Duration {
    std::fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|stat| ticks(&stat))
        .unwrap_or_default()
}

/// The most memory that was resident at a time, in bytes. Zero where `/proc` is missing.
pub(crate) fn peak_rss() -> u64 {
    field("VmHWM") * 1024
}

/// The memory that is resident now, in bytes. Zero where `/proc` is missing.
pub(crate) fn rss() -> u64 {
    field("VmRSS") * 1024
}

/// How many threads there are now. Zero where `/proc` is missing.
pub(crate) fn threads() -> u64 {
    field("Threads")
}

fn field(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    number(&status, name).unwrap_or(0)
}

/// A line of proc_pid_status(5); sizes are in kB.
fn number(status: &str, name: &str) -> Option<u64> {
    let of_name = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.to_owned());
    status.lines().find_map(of_name)?.split_ascii_whitespace().next()?.parse().ok()
}

/// Fields 14 and 15 of proc_pid_stat(5). The second field may hold anything, in parentheses.
fn ticks(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some(TICK * (ticks()? + ticks()?))
}

#[cfg(test)]
mod tests {
    use super::{number, ticks};
    use std::time::Duration;

    #[test]
    fn user_and_system_time() {
        let stat = "17 (a) b) S 1 17 17 0 -1 4194560 10 0 0 0 250 50 7 8 20 0 1 0";
        assert_eq!(ticks(stat), Some(Duration::from_secs(3)));
        assert_eq!(ticks("17 (a"), None);
    }

    #[test]
    fn lines_of_the_status() {
        let status = "Name:\tVmHWM: 7\nVmHWM:\t    5120 kB\nThreads:\t17\n";
        assert_eq!(number(status, "VmHWM"), Some(5120));
        assert_eq!(number(status, "Threads"), Some(17));
        assert_eq!(number(status, "VmRSS"), None);
    }
}
