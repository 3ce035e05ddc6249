//! What this machine and this process offer, and what to change where something is missing.
//!
//! Facts are read when asked for; nothing is kept. Each is one line: what it is about, what was
//! found, whether that is as good as can be, and else a word on what to do.

use crate::arch;
use crate::host::Access;
use crate::stack::GuardKind;
use crate::tls::{self, Defect, Kind, Report};
use gosched_base::barrier;
#[cfg(target_env = "gnu")]
use std::ffi::CStr;
use std::fmt;
use std::fs;

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fact {
    /// What it is about.
    pub name: &'static str,
    /// What was found.
    pub found: String,
    /// What to change, where something better is possible.
    pub advice: Option<&'static str>,
}

impl Fact {
    /// One that is as good as can be, or that nobody can change.
    pub fn new(name: &'static str, found: impl Into<String>) -> Fact {
        Fact { name, found: found.into(), advice: None }
    }

    /// The same, with an advice unless `good`.
    #[must_use]
    pub fn judged(self, good: bool, advice: &'static str) -> Fact {
        Fact { advice: (!good).then_some(advice), ..self }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<24} {}", self.name, self.found)?;
        match self.advice {
            Some(advice) => write!(f, " -- {advice}"),
            None => Ok(()),
        }
    }
}

/// All facts, in the order in which they are printed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Facts {
    /// How goroutines' thread-locals are kept.
    pub kind: Kind,
    /// How overflows are caught.
    pub guard: GuardKind,
    /// One line each.
    pub lines: Vec<Fact>,
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Looks at the machine and the process. Calls [`tls::init`] if nobody has.
#[must_use]
pub fn doctor() -> Facts {
    tls::init(None, None);
    let report = tls::report();
    let guard = GuardKind::detect();
    let lines =
        [of_system(), of_registers(&report), of_blocks(&report), of_memory(guard), of_limits()];
    Facts { kind: report.kind, guard, lines: lines.into_iter().flatten().collect() }
}

fn fact(name: &'static str, found: impl Into<String>) -> Fact {
    Fact::new(name, found)
}

/// As [`fact`], with an advice unless `good`.
fn judged(name: &'static str, found: impl Into<String>, good: bool, advice: &'static str) -> Fact {
    Fact::new(name, found).judged(good, advice)
}

fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

fn of_system() -> Vec<Fact> {
    vec![
        fact("kernel", read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into())),
        fact("libc", libc_version()),
        judged(
            "membarrier",
            yes_or_no(barrier::is_offered()),
            barrier::is_offered(),
            "running threads can't be revoked from; allow the system call",
        ),
    ]
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> String {
    let name = if cfg!(target_env = "musl") { "musl" } else { "another" };
    format!("{name}; no blocks can be made on it")
}

#[cfg(target_env = "gnu")]
fn libc_version() -> String {
    // SAFETY: no preconditions; returns a constant string.
    let text = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: terminated, and never freed.
    let text = unsafe { CStr::from_ptr(text) };
    format!("glibc {}", text.to_string_lossy())
}

fn of_registers(report: &Report) -> Vec<Fact> {
    let fsgsbase = arch::has_fsgsbase();
    vec![
        judged(
            "FSGSBASE",
            yes_or_no(fsgsbase),
            fsgsbase,
            "each switch makes a system call; use Linux 5.9 and don't boot with nofsgsbase",
        ),
        fact("FS is loaded by", access_name(report.access)),
        judged(
            "GS is free",
            yes_or_no(report.through_gs),
            report.through_gs,
            "machines are found through a thread-local, which is slower; what uses GS here?",
        ),
    ]
}

fn access_name(access: Access) -> &'static str {
    match access {
        Access::Instructions => "instruction",
        Access::SystemCalls => "system call",
        Access::Slot if arch::has_fsgsbase() => "instruction",
        Access::Slot => "system call",
    }
}

fn of_blocks(report: &Report) -> Vec<Fact> {
    let symbols = "use an unmodified glibc 2.34 or newer";
    let mut lines = vec![
        judged("thread-locals", kind_text(report), report.kind == Kind::Template, symbols),
        judged(
            "set*id",
            if report.setxid_wrapped { "reaches goroutines" } else { "may hang" },
            report.setxid_wrapped,
            "call `tls::init` earlier; signal 33 has no handler of libc's",
        ),
        judged("pthread keys", yes_or_no(report.key_destructors), report.key_destructors, symbols),
        judged("malloc caches freed", yes_or_no(report.malloc_cache), report.malloc_cache, symbols),
        fact("untouched parts seen", format!("{} of 4", report.untouched)),
        fact("rseq", if report.rseq { "left to libc's threads" } else { "not used by libc" }),
    ];
    lines.extend(report.symbols.iter().map(|(name, found)| {
        judged(name, if *found { "found" } else { "missing" }, *found, symbols)
    }));
    if let Some((tcb, area)) = report.sizes {
        lines.push(fact("a block's size", format!("{area} bytes, control block {tcb}")));
    }
    lines
}

fn kind_text(report: &Report) -> String {
    let kind = match report.kind {
        Kind::Template => "own blocks, from a template",
        Kind::DeadThread => "own blocks, each a dead thread's",
        Kind::Threads => "a kernel thread for each goroutine",
        Kind::Shared => "shared with the machine (not sound)",
    };
    match &report.defect {
        None => kind.into(),
        Some(Defect::NotAsked) => format!("{kind}, as asked for"),
        Some(defect) => format!("{kind}, because: {defect}"),
    }
}

fn of_memory(guard: GuardKind) -> Vec<Fact> {
    let maps = read_number("/proc/sys/vm/max_map_count").unwrap_or(0);
    let strict = read_number("/proc/sys/vm/overcommit_memory") == Some(2);
    let huge = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let huge = huge.unwrap_or_else(|| "not there".into());
    vec![
        judged(
            "guard",
            guard_name(guard),
            guard == GuardKind::Marker,
            "two mappings a stack; Linux 6.13 needs none",
        ),
        judged(
            "vm.max_map_count",
            maps.to_string(),
            guard == GuardKind::Marker || maps >= 1 << 20,
            "bounds the number of stacks to half of it; raise it with sysctl",
        ),
        judged(
            "overcommit",
            if strict { "strict" } else { "allowed" },
            !strict,
            "stacks are opened in small chunks; vm.overcommit_memory=0 is faster",
        ),
        fact("huge pages", format!("{huge} (kept out of stacks)")),
    ]
}

fn guard_name(guard: GuardKind) -> &'static str {
    match guard {
        GuardKind::Marker => "markers in page tables",
        GuardKind::Protect => "mprotect",
        GuardKind::Canary => "canaries only",
    }
}

fn of_limits() -> Vec<Fact> {
    const FILES: u64 = 65_536;
    let unlimited = |text: &str| text == "unlimited";
    let [space, files, processes, stack] =
        [libc::RLIMIT_AS, libc::RLIMIT_NOFILE, libc::RLIMIT_NPROC, libc::RLIMIT_STACK]
            .map(soft_limit);
    let many = unlimited(&files) || files.parse().is_ok_and(|n: u64| n >= FILES);
    vec![
        judged(
            "RLIMIT_AS",
            space.clone(),
            unlimited(&space),
            "bounds the number of stacks, at 256 KiB each; ulimit -v unlimited",
        ),
        judged("RLIMIT_NOFILE", files, many, "bounds the number of sockets; ulimit -n"),
        fact("RLIMIT_NPROC", processes),
        fact("RLIMIT_STACK", stack),
    ]
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = std::ffi::c_int;

fn soft_limit(which: Resource) -> String {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes the limits, which are ours.
    unsafe { libc::getrlimit(which, &mut limit) };
    match limit.rlim_cur {
        libc::RLIM_INFINITY => "unlimited".into(),
        some => some.to_string(),
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn read_number(path: &str) -> Option<usize> {
    read(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Fact, doctor};
    use crate::tls::Kind;

    #[test]
    fn every_fact_has_a_line_and_only_what_is_amiss_an_advice() {
        let facts = doctor();
        let text = facts.to_string();
        assert_eq!(text.lines().count(), facts.lines.len());
        for name in ["kernel", "libc", "FSGSBASE", "guard", "RLIMIT_NOFILE", "__call_tls_dtors"] {
            assert!(facts.lines.iter().any(|line| line.name == name), "{name}: {text}");
        }
        let of = |name| facts.lines.iter().find(|line| line.name == name).expect("listed");
        assert_eq!(of("thread-locals").advice.is_none(), facts.kind == Kind::Template);
    }

    #[test]
    fn a_line_says_what_to_change() {
        let fact = Fact { name: "guard", found: "mprotect".into(), advice: Some("do") };
        assert_eq!(fact.to_string(), "guard                    mprotect -- do");
    }
}
