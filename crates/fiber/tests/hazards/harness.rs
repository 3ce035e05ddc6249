//! Runs a test's body in a child process per mode, beside a watchdog.

use gosched_fiber::host::Access;
use gosched_fiber::tls::{self, Kind};
use gosched_fiber::{Coroutine, suspend};
use std::io::Write;
use std::process::Command;
use std::time::Duration;

/// One way of keeping thread-locals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    name: &'static str,
    kind: Kind,
    access: Access,
}

/// The default.
pub(crate) const TEMPLATE: Mode =
    Mode { name: "template", kind: Kind::Template, access: Access::Instructions };
const TEMPLATE_BY_CALLS: Mode =
    Mode { name: "template-by-calls", kind: Kind::Template, access: Access::SystemCalls };
const DEAD_THREAD: Mode =
    Mode { name: "dead-thread", kind: Kind::DeadThread, access: Access::Instructions };
const THREADS: Mode = Mode { name: "threads", kind: Kind::Threads, access: Access::Instructions };

/// Every mode in which a coroutine is a thread as far as libc can tell.
pub(crate) const ALL: &[Mode] = &[TEMPLATE, TEMPLATE_BY_CALLS, DEAD_THREAD, THREADS];
/// The modes in which a coroutine has a block of its own.
pub(crate) const BLOCKS: &[Mode] = &[TEMPLATE, TEMPLATE_BY_CALLS, DEAD_THREAD];

const MODE: &str = "GOSCHED_TEST_MODE";
/// A hundred times what any body takes where it has the machine for itself; a hang ends the child with
/// SIGABRT.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// Runs `body` once in a child process for each mode. `test` is the path of the calling test.
pub(crate) fn in_each(modes: &[Mode], test: &str, body: fn(Mode)) {
    match std::env::var(MODE) {
        Ok(name) => {
            let mode = *ALL.iter().find(|m| m.name == name).expect("a known mode");
            run_here(mode, body);
        }
        Err(_) => modes.iter().for_each(|mode| run_child(*mode, test)),
    }
}

fn run_here(mode: Mode, body: fn(Mode)) {
    std::thread::spawn(|| {
        std::thread::sleep(PATIENCE);
        eprintln!("watchdog: the test hangs");
        std::process::abort();
    });
    let kind = tls::init(Some(mode.kind), Some(mode.access));
    let report = tls::report();
    if kind != mode.kind || report.access != mode.access {
        println!("SKIPPED: {} is not to be had here: {report:?}", mode.name);
        return;
    }
    body(mode);
}

fn run_child(mode: Mode, test: &str) {
    let exe = std::env::current_exe().expect("the path of this program");
    let output = Command::new(exe)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(MODE, mode.name)
        .output()
        .expect("a child process");
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines().filter_map(|l| l.split_once("SKIPPED: ")) {
        // Not through `print!`, whose output of tests that pass nobody sees.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {test} under {}: {}", mode.name, line.1);
    }
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{test} under {}: {}\n{text}\n{}",
        mode.name,
        output.status,
        String::from_utf8_lossy(&output.stderr),
    );
}

/// Says loudly that something was not tested.
pub(crate) fn skip(reason: &str) {
    println!("SKIPPED: {reason}");
}

/// A coroutine; the test fails without.
pub(crate) fn coroutine(f: impl FnOnce() + Send + 'static) -> Coroutine {
    Coroutine::new(f).expect("a coroutine")
}

/// Runs `f` in a coroutine that is suspended and resumed by another thread before `f` starts.
pub(crate) fn moved(f: impl FnOnce() + Send + 'static) {
    let mut c = coroutine(|| {
        suspend();
        f();
    });
    assert!(!c.resume());
    on_thread(move || assert!(c.resume(), "suspended a second time"));
}

/// Runs `f` on a new plain thread and hands over its panic.
pub(crate) fn on_thread<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(f).join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}
