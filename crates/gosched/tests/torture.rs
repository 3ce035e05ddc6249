//! The torture test, for a moment each time the tests run; `cargo xtask ci torture` is the minute
//! in each mode. The program is `testprogs/src/bin/torture`, and says what it does.
//!
//! `TORTURE_SECS` makes it longer, up to 100; `TORTURE_SEED` begins with the same numbers. HACKING.md
//! says how to run it for hours.

#[allow(dead_code, reason = "shared with the tests of blocking calls")]
#[path = "blocked/child.rs"]
mod child;

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// What `child` builds.
const PROGRAMS: &[&str] = &["--bin", "torture"];

fn torture(mode: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let seed = env::var("TORTURE_SEED").unwrap_or_else(|_| now.subsec_micros().to_string());
    let seconds = env::var("TORTURE_SECS").unwrap_or_else(|_| "3".into());
    let ended = child::run(mode, "torture", &[&seed, &seconds]);
    ended.expect_code(0);
    println!("{mode} seed={seed}");
    if ended.is_skipped() {
        return;
    }
    for seen in ["preemptions", "deferred_in_libc", "refused_in_handler", "frozen", "forced"] {
        println!("{seen} {}", ended.number(seen));
    }
}

#[test]
fn with_thread_locals_of_their_own() {
    torture("tls=own");
}

#[test]
fn where_registers_need_system_calls() {
    torture("tls=syscall");
}

#[test]
fn with_shared_thread_locals() {
    torture("tls=shared");
}
