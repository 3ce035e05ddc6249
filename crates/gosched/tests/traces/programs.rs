//! Programs that are traced, in every mode of thread-locals.

use crate::check;
use crate::child::{Child, Ended};
use gosched_trace_format::Kind::{self, *};
use gosched_trace_format::{Event, Verified, verify};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, process};

/// A name for a file of this test's; removed when dropped, unless the test fails.
pub(crate) struct TraceFile(pub(crate) PathBuf);

impl TraceFile {
    pub(crate) fn new(name: &str) -> TraceFile {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        TraceFile(folder.join(format!("{name}-{}.trace", process::id())))
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("the target folder is UTF-8")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(&self.0).expect("it was written")
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_file(&self.0);
        }
    }
}

const ALWAYS: [Kind; 19] = [
    ProcsChange,
    ProcStart,
    ProcStop,
    ProcSteal,
    ProcStatus,
    GoCreate,
    GoStart,
    GoDestroy,
    GoStop,
    GoBlock,
    GoUnblock,
    GoSyscallBegin,
    GoSyscallEndBlocked,
    STWBegin,
    STWEnd,
    GCBegin,
    GCEnd,
    GoStatusStack,
    GoStatus,
];

#[track_caller]
fn busy(tls: &str, stopped: &str) -> Verified {
    let file = TraceFile::new(&format!("busy-{tls}"));
    let child = Child::new("trace_busy", &[file.path(), "60", stopped]).procs(2);
    // Generations of a second take a minute.
    let ended = child.env("GOSCHED", &format!("gc=off,traceperiod=5,tls={tls}")).run();
    let figures = ended.figures();
    let verified = check(&file.bytes());
    agree(&verified, preempted(&file.bytes()), &ended);
    assert!(verified.generations >= 60);
    for kind in ALWAYS {
        assert!(verified.count(kind) > 0, "{kind:?}\n{}", ended.story());
    }
    assert_eq!(verified.count(GoCreate), figures.get("created"), "{}", ended.story());
    for (kind, figure) in
        [(GCBegin, "collections"), (GCEnd, "collections"), (STWBegin, "stops"), (STWEnd, "stops")]
    {
        assert_eq!(verified.count(kind), figures.get(figure), "{kind:?} {}", ended.story());
    }
    for (kind, per_step) in [
        (UserTaskBegin, 1),
        (UserTaskEnd, 1),
        (UserRegionBegin, 1),
        (UserRegionEnd, 1),
        (UserLog, 2),
    ] {
        assert_eq!(verified.count(kind), per_step * figures.get("steps"), "{kind:?}");
    }
    // Calls come back; but one may have begun before, and who ends the trace waits in one.
    let returned = verified.count(GoSyscallEnd) + verified.count(GoSyscallEndBlocked);
    assert!(returned.abs_diff(verified.count(GoSyscallBegin)) <= 2, "{}", ended.story());
    verified
}

/// The runtime's counters and the trace's events tell the same. A number is counted a moment before or
/// after its event is written, once for each processor at most.
#[track_caller]
fn agree(verified: &Verified, preempted: u64, ended: &Ended) {
    const PROCS: u64 = 4;
    let figures = ended.figures();
    let least = |name: &str| figures.get(&format!("{name}_least"));
    let most = |name: &str| figures.get(&format!("{name}_most"));
    let check = |name: &str, events: u64, least: u64, most: u64| {
        let range = least.saturating_sub(PROCS)..=most + PROCS;
        assert!(range.contains(&events), "{events} {name} of {range:?}\n{}", ended.story());
    };
    // Who comes back from a call on another processor starts there without having been in a queue.
    let returned = verified.count(GoSyscallEndBlocked);
    let starts = verified.count(GoStart);
    assert!(starts > 1000, "{starts} starts");
    check("starts", starts, least("starts"), most("starts") + returned);
    check("ends", verified.count(GoDestroy), least("ends"), most("ends"));
    check("collections", verified.count(GCEnd), least("collections"), most("collections"));
    // A signal may come too late for the goroutine that it was for.
    check("preemptions", preempted, least("asked"), most("asked") + most("stopped"));
}

/// How many goroutines were stopped because somebody asked for it.
fn preempted(file: &[u8]) -> u64 {
    let mut count = 0;
    let verified = verify(file, |generation, seen| {
        let Event { kind, args, .. } = seen.event;
        let why = generation.strings.get(&args[0]);
        count += u64::from(kind == GoStop && why.is_some_and(|why| *why == "preempted"));
    });
    assert!(verified.is_ok());
    count
}

#[test]
fn a_busy_program() {
    busy("own", "5");
}

#[test]
fn a_busy_program_with_shared_thread_locals() {
    busy("shared", "0");
}

#[test]
fn a_busy_program_with_a_thread_for_each() {
    busy("threads", "0");
}

/// Random programs: their traces have an order, nothing runs twice at once, what was blocked was
/// unblocked before it ran, and no more processors run than there are.
#[track_caller]
fn chaos(tls: &str) {
    for procs in [1, 2, 8] {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let seed = now.subsec_nanos().to_string();
        println!("tls={tls} procs={procs} seed={seed}");
        let file = TraceFile::new(&format!("chaos-{tls}-{procs}"));
        let child = Child::new("sched_chaos", &[&seed, "400"]).procs(procs);
        let child = child.env("GOSCHED", &format!("tls={tls}")).env("CHAOS_TRACE", file.path());
        let figures = child.run();
        figures.figures().expect("wrong_locals", 0);
        let verified = check(&file.bytes());
        for kind in [GoCreate, GoStart, GoStop, GoBlock, GoUnblock, GoDestroy] {
            assert!(verified.count(kind) > 0, "{kind:?}\n{}", figures.story());
        }
    }
}

#[test]
fn random_programs() {
    chaos("own");
}

#[test]
fn random_programs_with_shared_thread_locals() {
    chaos("shared");
}
