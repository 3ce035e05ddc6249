//! A debugger sees threads and their frames.

use crate::harness::{BLOCKS, PATIENCE, coroutine, in_each, skip};
use gosched_fiber::suspend;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[inline(never)]
fn spins_on_a_fiber(stop: &AtomicBool, inside: &AtomicBool) {
    inside.store(true, SeqCst);
    while !stop.load(SeqCst) {
        std::hint::spin_loop();
    }
}

/// `ptrace_scope` may forbid to attach to a parent.
fn allow_debugger() {
    const ANYBODY: usize = usize::MAX;
    // SAFETY: no memory is passed. It fails where nothing forbids it.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, ANYBODY, 0, 0, 0) };
}

#[test]
fn it_lists_threads_and_a_running_fibers_frames() {
    in_each(BLOCKS, "debugger::it_lists_threads_and_a_running_fibers_frames", |_| {
        allow_debugger();
        let mut suspended: Vec<_> = (0..10).map(|_| coroutine(suspend)).collect();
        suspended.iter_mut().for_each(|c| assert!(!c.resume()));
        let (stop, inside) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (stops, sets) = (stop.clone(), inside.clone());
        let carrier = std::thread::spawn(move || {
            let mut c = coroutine(move || spins_on_a_fiber(&stops, &sets));
            assert!(c.resume());
        });
        while !inside.load(SeqCst) {
            std::thread::yield_now();
        }
        let pid = std::process::id().to_string();
        let seconds = (PATIENCE.as_secs() / 2).to_string();
        let output = Command::new("timeout")
            .args([seconds.as_str(), "gdb", "-nx", "-batch", "-p", &pid])
            .args(["-ex", "set debuginfod enabled off", "-ex", "thread apply all bt"])
            .output();
        stop.store(true, SeqCst);
        carrier.join().expect("the carrier");
        suspended.iter_mut().for_each(|c| assert!(c.resume()));
        // `timeout` says so when there is no such program.
        const NOT_FOUND: i32 = 127;
        let output = output.ok().filter(|output| output.status.code() != Some(NOT_FOUND));
        let Some(output) = output else { return skip("no gdb") };
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        if errors.contains("ptrace: ") {
            return skip(&format!("gdb can't attach: {errors}"));
        }
        check(&text, &errors);
    });
}

fn check(text: &str, errors: &str) {
    let threads: Vec<&str> = text.split("\nThread ").skip(1).collect();
    assert!(threads.len() >= 3, "main, test and carrier: {text}\n{errors}");
    let running = threads.iter().find(|t| t.contains("spins_on_a_fiber"));
    let running = running.unwrap_or_else(|| panic!("not listed: {text}\n{errors}"));
    let last = running.lines().rfind(|l| l.starts_with('#'));
    assert!(last.is_some_and(|l| l.contains("first_frame")), "{running}");
}
