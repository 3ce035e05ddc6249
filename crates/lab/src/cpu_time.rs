//! How much CPU time this process has used, from `/proc`.

use std::time::Duration;

/// What the kernel calls USER_HZ: 100 on every platform that the runtime knows.
const TICK: Duration = Duration::from_millis(10);

/// All threads together, in user code and in the kernel. Zero where `/proc` is missing.
pub(crate) fn used() -> Duration {
    std::fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|stat| parse(&stat))
        .unwrap_or_default()
}

/// Fields 14 and 15 of proc_pid_stat(5). The second field may hold anything, in parentheses.
fn parse(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some(TICK * (ticks()? + ticks()?))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::time::Duration;

    #[test]
    fn user_and_system_time() {
        let stat = "17 (a) b) S 1 17 17 0 -1 4194560 10 0 0 0 250 50 7 8 20 0 1 0";
        assert_eq!(parse(stat), Some(Duration::from_secs(3)));
        assert_eq!(parse("17 (a"), None);
    }
}
