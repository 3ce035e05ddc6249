//! The ways to keep thread-locals; one for a whole process.

use gosched_fiber::host::Access;
use gosched_fiber::tls::{self, Kind};

/// One way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Blocks from the template, loaded by `wrfsbase`.
    Template,
    /// Blocks from the template, loaded by system calls.
    SystemCalls,
    /// Blocks of dead threads.
    DeadThread,
    /// A kernel thread a coroutine.
    Threads,
}

/// Names the mode to a child.
pub(crate) const VARIABLE: &str = "GOSCHED_TEST_MODE";

impl Mode {
    /// All of them, in the order they are tried.
    pub(crate) const ALL: [Mode; 4] =
        [Mode::Template, Mode::SystemCalls, Mode::DeadThread, Mode::Threads];

    /// As tables and [`VARIABLE`] have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Template => "template",
            Mode::SystemCalls => "template-by-syscalls",
            Mode::DeadThread => "dead-thread",
            Mode::Threads => "threads",
        }
    }

    /// The mode this process was started for; `None` in the parent.
    pub(crate) fn from_environment() -> Option<Mode> {
        let name = std::env::var(VARIABLE).ok()?;
        let mode = Mode::ALL.into_iter().find(|mode| mode.name() == name);
        Some(mode.unwrap_or_else(|| panic!("{VARIABLE}={name}: no such mode")))
    }

    /// Chooses this mode for the process, or says why it is not to be had here.
    pub(crate) fn choose(self) -> Result<(), String> {
        let (kind, access) = match self {
            Mode::Template => (Kind::Template, Access::Instructions),
            Mode::SystemCalls => (Kind::Template, Access::SystemCalls),
            Mode::DeadThread => (Kind::DeadThread, Access::Instructions),
            Mode::Threads => (Kind::Threads, Access::Instructions),
        };
        tls::init(Some(kind), Some(access));
        let report = tls::report();
        if (report.kind, report.access) == (kind, access) {
            return Ok(());
        }
        Err(format!("this machine gives {:?} by {:?}", report.kind, report.access))
    }
}
