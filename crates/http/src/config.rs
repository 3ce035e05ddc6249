//! Limits and time-outs of a server.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) head_bytes: usize,
    pub(crate) fields: usize,
    pub(crate) body_bytes: u64,
    pub(crate) connections: usize,
    pub(crate) header: Duration,
    pub(crate) body: Duration,
    pub(crate) write: Duration,
    pub(crate) idle: Duration,
}

impl Config {
    pub(crate) const DEFAULT: Config = Config {
        head_bytes: 16 << 10,
        fields: 100,
        body_bytes: 1 << 20,
        connections: 65_536,
        header: Duration::from_secs(10),
        body: Duration::from_secs(300),
        write: Duration::from_secs(30),
        idle: Duration::from_secs(75),
    };
}

/// What a time-out must be: zero would mean that nothing may ever wait.
#[track_caller]
pub(crate) fn positive(timeout: Duration) -> Duration {
    assert!(!timeout.is_zero(), "a time-out of zero");
    timeout
}
