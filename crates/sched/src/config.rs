//! Settings: one table for `GOSCHED=key=value,...` and [`Config`].

use crate::fleet;
use crate::gomaxprocs::{Sight, Source};
use crate::scheduler::PROCS_MAX;
use gosched_fiber::host::Access;
use gosched_fiber::stack::Class;
use gosched_fiber::tls::Kind;
use gosched_topology::{Containers, Root};
use std::fmt;
use std::time::Duration;

/// Where goroutines' thread-locals live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// Each goroutine has its own. The default, and what makes `go` a safe function.
    #[default]
    Own,
    /// Those of whatever thread runs it. Cheaper, and not sound: only for programs known to keep no
    /// reference to a thread-local across a wait.
    Shared,
}

/// Every key of `GOSCHED`, with what it does: the one table.
const KEYS: &[(&str, &str)] = &[
    ("procs", "number of processors; GOMAXPROCS says the same"),
    ("tls", "own, shared, threads, deadthread, syscall or slot"),
    ("stack", "default stack size, e.g. 256k"),
    ("schedtrace", "print the scheduler's state every N ms"),
    ("scheddetail", "with schedtrace: every G, M and P"),
    ("schedtracejson", "with schedtrace: one line of JSON each time"),
    ("asyncpreemptoff", "1: never stop goroutines by signal"),
    ("slice", "time slice, e.g. 10ms, or off"),
    ("maxthreads", "most threads there may be"),
    ("numa", "0: take no notice of NUMA nodes; pin: tie threads to them"),
    ("steal", "0: processors keep what was made on them; to see what stealing does"),
    ("rest", "0: never let one of two machines rest that share a CPU"),
    ("updatemaxprocs", "0: don't follow quota changes"),
    ("containermaxprocs", "0: take no notice of cgroup quotas"),
    ("traceback", "none, single, all"),
    ("panic", "abort: a panic in a goroutine ends the process"),
    ("unguarded", "1: accept stacks without guard pages"),
    ("chaos", "seed: dice decide who runs next and who yields, to find what holds by luck"),
    ("hints", "1: say what may have been forgotten, 0: don't; else on a terminal only"),
    ("gc", "off: no collections that nobody asks for"),
    ("traceperiod", "how long a generation of a trace is, in ms; for tests"),
    ("root", "folder of a made-up /proc and /sys, for tests"),
];

/// A goroutine's time slice. Go's.
const SLICE_NS: u64 = 10_000_000;
/// A shorter one would be spent on switching.
const SLICE_MIN_NS: u64 = 100_000;

/// How the runtime is to start. For the binary's author; a library leaves it alone.
#[derive(Clone, Debug, Default)]
pub struct Config {
    procs: Option<usize>,
    tls: Option<TlsSetting>,
    stack_bytes: Option<usize>,
    slice_ns: Option<u64>,
    async_preempt_off: Option<bool>,
    threads_max: Option<u32>,
    numa: Option<Numa>,
    steals: Option<bool>,
    rests: Option<bool>,
    hints: Option<bool>,
    updates_procs: Option<bool>,
    counts_quotas: Option<bool>,
    collects: Option<bool>,
    root: Option<Root>,
    chaos: Option<u64>,
    report_ms: Option<u64>,
    trace_period_ms: Option<u64>,
    report_detail: Option<bool>,
    report_json: Option<bool>,
    traceback: Option<Traceback>,
}

/// Whose paragraphs a fatal error prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Traceback {
    None,
    /// The goroutine's that caused it; everybody's if none did.
    Single,
    #[default]
    All,
}

/// What is made of NUMA nodes and caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Numa {
    /// Work is looked for, and machines are woken, near by first.
    #[default]
    On,
    /// Besides, a machine's thread is tied to the node of the processor that it holds.
    Pin,
    /// Far steals are counted, and nothing else is different from `Off`; for comparisons.
    Blind,
    /// All are alike.
    Off,
}

/// What the monitor prints of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) period_ns: u64,
    pub(crate) is_detailed: bool,
    pub(crate) is_json: bool,
}

/// What `tls` may be; the last four are for tests and emergencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsSetting {
    Own,
    Shared,
    Threads,
    DeadThread,
    Syscall,
    Slot,
}

impl TlsSetting {
    pub(crate) fn kind(self) -> (Option<Kind>, Option<Access>) {
        match self {
            TlsSetting::Own => (None, None),
            TlsSetting::Shared => (Some(Kind::Shared), None),
            TlsSetting::Threads => (Some(Kind::Threads), None),
            TlsSetting::DeadThread => (Some(Kind::DeadThread), None),
            TlsSetting::Syscall => (None, Some(Access::SystemCalls)),
            TlsSetting::Slot => (None, Some(Access::Slot)),
        }
    }
}

/// The settings that hold.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    pub(crate) procs: usize,
    pub(crate) procs_source: Source,
    /// Whether a default number of processors is followed.
    pub(crate) updates_procs: bool,
    pub(crate) sight: Sight,
    pub(crate) numa: Numa,
    /// Whether processors take each other's goroutines.
    pub(crate) steals: bool,
    /// Whether processors rest while two machines would share a CPU.
    pub(crate) rests: bool,
    /// Whether hints are printed; on a terminal only if it is not said.
    pub(crate) hints: Option<bool>,
    /// Whether collections run in the background.
    pub(crate) collects: bool,
    pub(crate) trace_period: Duration,
    pub(crate) tls: TlsSetting,
    pub(crate) class: Class,
    pub(crate) shares_tls: bool,
    pub(crate) panic_aborts: bool,
    pub(crate) slice_ns: u64,
    pub(crate) async_preempt: bool,
    /// Most machines there may be.
    pub(crate) threads_max: u32,
    /// The seed, if dice decide.
    pub(crate) chaos: Option<u64>,
    pub(crate) report: Option<Report>,
    pub(crate) traceback: Traceback,
}

/// The runtime has started before, with other settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError(());

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the runtime has started already; call Config::start first in main, before any \
             goroutine",
        )
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Defaults.
    #[must_use]
    pub fn new() -> Config {
        Config::default()
    }

    /// How many goroutines run at once; 0 means the default.
    #[must_use]
    pub fn procs(mut self, procs: usize) -> Config {
        self.procs = (procs > 0).then_some(procs);
        self
    }

    /// Bytes of a goroutine's stack; rounded up to a size class.
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Config {
        self.stack_bytes = Some(bytes);
        self
    }

    /// Most threads that run goroutines, blocked ones included; 0 means the default of 10,000.
    ///
    /// Go's `debug.SetMaxThreads`. Goroutines that find every thread blocked wait until one is
    /// back. If every thread belongs to a goroutine locked to it that waits for its turn, the
    /// process ends as Go's does.
    #[must_use]
    pub fn max_threads(mut self, threads: usize) -> Config {
        self.threads_max = u32::try_from(threads).ok().filter(|n| *n > 0);
        self
    }

    /// Goroutines use the thread-locals of whatever thread runs them.
    ///
    /// # Safety
    /// * No code that runs in goroutines keeps a reference to a thread-local, or a value that is
    ///   not `Send` because of one, across anything that may wait. The compiler may do so on its
    ///   own: it caches thread-locals' addresses.
    #[must_use]
    pub unsafe fn tls_shared(mut self) -> Config {
        self.tls = Some(TlsSetting::Shared);
        self
    }

    /// How long a goroutine computes before others get their turn; at least 100 us.
    #[must_use]
    pub fn slice(mut self, slice: Duration) -> Config {
        self.slice_ns = Some(crate::wait::nanoseconds(slice).max(SLICE_MIN_NS));
        self
    }

    /// Whether computing goroutines are stopped by signal. Off is the world before Go 1.14.
    #[must_use]
    pub fn async_preemption(mut self, on: bool) -> Config {
        self.async_preempt_off = Some(!on);
        self
    }

    /// Whether notice is taken of NUMA nodes and shared caches. On unless it is said.
    #[must_use]
    pub fn numa(mut self, on: bool) -> Config {
        self.numa = Some(if on { Numa::On } else { Numa::Off });
        self
    }

    /// Whether a default number of processors follows changes of the quota and of the affinity mask.
    /// On unless it is said.
    #[must_use]
    pub fn update_procs(mut self, on: bool) -> Config {
        self.updates_procs = Some(on);
        self
    }

    /// Whether quotas of cgroups count for the default number of processors. On unless it is said.
    #[must_use]
    pub fn count_quotas(mut self, on: bool) -> Config {
        self.counts_quotas = Some(on);
        self
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// If it has started before.
    pub fn start(self) -> Result<(), ConfigError> {
        if crate::start(self) { Ok(()) } else { Err(ConfigError(())) }
    }

    /// These settings, the environment's over them, defaults for the rest.
    pub(crate) fn settle(self) -> Settled {
        let mut merged = self;
        let mut panic_aborts = false;
        let variable = std::env::var_os("GOMAXPROCS");
        let number = variable.as_ref().and_then(|n| n.to_str()?.trim().parse().ok());
        let number = number.filter(|n| *n > 0);
        merged.procs = number.or(merged.procs);
        let text = std::env::var("GOSCHED").unwrap_or_default();
        for item in text.split(',').filter(|item| !item.is_empty()) {
            merged.apply_or_warn(item, &mut panic_aborts);
        }
        let sight = Sight {
            root: merged.root.unwrap_or_else(Root::system),
            containers: match merged.counts_quotas {
                Some(false) => Containers::Ignored,
                _ => Containers::Count,
            },
        };
        let procs = merged.procs.unwrap_or_else(|| sight.look().procs).min(PROCS_MAX);
        if let Some(text) = variable.filter(|_| number.is_none()) {
            let text = text.to_string_lossy();
            warn(format_args!("GOMAXPROCS={text} is not a positive number; using {procs}"));
        }
        let bytes = merged.stack_bytes.unwrap_or_else(|| Class::DEFAULT.usable_bytes());
        let tls = merged.tls.unwrap_or(TlsSetting::Own);
        Settled {
            procs,
            procs_source: if merged.procs.is_some() { Source::Asked } else { Source::Default },
            updates_procs: merged.updates_procs.unwrap_or(true),
            sight,
            numa: merged.numa.unwrap_or_default(),
            steals: merged.steals.unwrap_or(true),
            rests: merged.rests.unwrap_or(true),
            hints: merged.hints,
            collects: merged.collects.unwrap_or(true),
            trace_period: Duration::from_millis(merged.trace_period_ms.unwrap_or(1_000)),
            tls,
            class: Class::for_bytes(bytes).unwrap_or(Class::DEFAULT),
            shares_tls: tls == TlsSetting::Shared,
            panic_aborts,
            slice_ns: merged.slice_ns.unwrap_or(SLICE_NS),
            async_preempt: !merged.async_preempt_off.unwrap_or(false),
            threads_max: merged.threads_max.unwrap_or(fleet::THREADS_MAX_DEFAULT),
            traceback: merged.traceback.unwrap_or_default(),
            chaos: merged.chaos,
            report: merged.report_ms.filter(|ms| *ms > 0).map(|ms| Report {
                period_ns: ms.saturating_mul(1_000_000),
                is_detailed: merged.report_detail.unwrap_or(false),
                is_json: merged.report_json.unwrap_or(false),
            }),
        }
    }

    fn apply_or_warn(&mut self, item: &str, panic_aborts: &mut bool) {
        let (key, value) = item.split_once('=').unwrap_or((item, "1"));
        let (key, value) = (key.trim(), value.trim());
        match self.apply(key, value, panic_aborts) {
            Applied::Unknown => {
                warn(format_args!("GOSCHED: unknown key {key:?}; known are {}", known()));
            }
            Applied::NotUnderstood => {
                warn(format_args!("GOSCHED: {key}={value} is not understood; the default is used"));
            }
            Applied::Holds => {}
        }
    }

    fn apply(&mut self, key: &str, value: &str, panic_aborts: &mut bool) -> Applied {
        if !KEYS.iter().any(|(k, _)| *k == key) {
            return Applied::Unknown;
        }
        let understood = match key {
            "procs" => set(&mut self.procs, value.parse().ok().filter(|n| *n > 0)),
            "tls" => set(&mut self.tls, parse_tls(value)),
            "asyncpreemptoff" => set(&mut self.async_preempt_off, parse_switch(value)),
            "slice" => set(&mut self.slice_ns, parse_slice(value)),
            "stack" => set(&mut self.stack_bytes, parse_bytes(value)),
            "maxthreads" => set(&mut self.threads_max, value.parse().ok().filter(|n| *n > 0)),
            "numa" => set(&mut self.numa, parse_numa(value)),
            "hints" => set(&mut self.hints, parse_switch(value)),
            "rest" => set(&mut self.rests, parse_switch(value)),
            "steal" => set(&mut self.steals, parse_switch(value)),
            "updatemaxprocs" => set(&mut self.updates_procs, parse_switch(value)),
            "containermaxprocs" => set(&mut self.counts_quotas, parse_switch(value)),
            "gc" => set(&mut self.collects, parse_on_off(value)),
            "chaos" => set(&mut self.chaos, value.parse().ok()),
            "root" => set(&mut self.root, Some(Root::at(value))),
            "traceback" => set(&mut self.traceback, parse_traceback(value)),
            "traceperiod" => {
                set(&mut self.trace_period_ms, value.parse().ok().filter(|ms| *ms > 0))
            }
            "schedtrace" => set(&mut self.report_ms, value.parse().ok()),
            "scheddetail" => set(&mut self.report_detail, parse_switch(value)),
            "schedtracejson" => set(&mut self.report_json, parse_switch(value)),
            "panic" => {
                *panic_aborts = value == "abort";
                value == "abort" || value == "unwind"
            }
            "unguarded" => {
                if value == "1" {
                    gosched_fiber::stack::choose_guard(gosched_fiber::stack::GuardKind::Canary);
                }
                value == "1" || value == "0"
            }
            _ => return Applied::Unknown,
        };
        if understood { Applied::Holds } else { Applied::NotUnderstood }
    }
}

/// What became of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applied {
    Holds,
    /// There is no such key.
    Unknown,
    NotUnderstood,
}

fn set<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let understood = value.is_some();
    if understood {
        *place = value;
    }
    understood
}

fn parse_tls(value: &str) -> Option<TlsSetting> {
    Some(match value {
        "own" => TlsSetting::Own,
        "shared" => TlsSetting::Shared,
        "threads" => TlsSetting::Threads,
        "deadthread" => TlsSetting::DeadThread,
        "syscall" => TlsSetting::Syscall,
        "slot" => TlsSetting::Slot,
        _ => return None,
    })
}

fn parse_traceback(value: &str) -> Option<Traceback> {
    Some(match value {
        "none" => Traceback::None,
        "single" => Traceback::Single,
        "all" => Traceback::All,
        _ => return None,
    })
}

fn parse_switch(value: &str) -> Option<bool> {
    match value {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

fn parse_numa(value: &str) -> Option<Numa> {
    Some(match value {
        "0" => Numa::Off,
        "1" => Numa::On,
        "pin" => Numa::Pin,
        "blind" => Numa::Blind,
        _ => return None,
    })
}

fn parse_on_off(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// `10ms`, `100us`, `off`; not below 100 us.
fn parse_slice(value: &str) -> Option<u64> {
    if value == "off" {
        return Some(u64::MAX);
    }
    let (digits, unit) = match value.strip_suffix("us") {
        Some(digits) => (digits, 1_000),
        None => (value.strip_suffix("ms")?, 1_000_000),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|ns| *ns >= SLICE_MIN_NS)
}

/// `4096`, `64k`, `1m`.
fn parse_bytes(value: &str) -> Option<usize> {
    let lower = value.to_ascii_lowercase();
    let (digits, unit) = match lower.strip_suffix('k') {
        Some(digits) => (digits, 1 << 10),
        None => lower.strip_suffix('m').map_or((lower.as_str(), 1), |digits| (digits, 1 << 20)),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit).filter(|bytes| *bytes > 0)
}

fn known() -> String {
    KEYS.iter().map(|(key, _)| *key).collect::<Vec<_>>().join(", ")
}

fn warn(message: fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "gosched: {message}");
}

#[cfg(test)]
mod tests;
