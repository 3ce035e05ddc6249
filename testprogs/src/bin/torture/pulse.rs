//! Where a goroutine runs, and whether that changes.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use testprogs::signals::thread_id;

/// Goroutines that were seen on another thread than before.
static MIGRATIONS: AtomicU64 = AtomicU64::new(0);

std::thread_local! {
    static THREAD: Cell<i32> = const { Cell::new(0) };
}

/// How often a goroutine was on another thread than at its beat before.
pub(crate) fn migrations() -> u64 {
    MIGRATIONS.load(Relaxed)
}

/// Looks at the thread. What happens between two beats is seen once at most.
pub(crate) fn beat() {
    if shares_thread_locals() {
        return;
    }
    let now = thread_id();
    let before = THREAD.replace(now);
    MIGRATIONS.fetch_add(u64::from(before != 0 && before != now), Relaxed);
}

/// Whether goroutines use their threads' thread-locals.
pub(crate) fn shares_thread_locals() -> bool {
    static SHARED: OnceLock<bool> = OnceLock::new();
    *SHARED.get_or_init(|| is_mode("tls=shared"))
}

/// Whether goroutines are stopped by signals: not where machines are found through a slot.
pub(crate) fn has_signals() -> bool {
    !is_mode("tls=slot")
}

fn is_mode(setting: &str) -> bool {
    std::env::var("GOSCHED").is_ok_and(|settings| settings.contains(setting))
}

/// Arithmetic for some microseconds each round, with a beat in between.
pub(crate) fn compute(rounds: u64, mut x: u64) -> u64 {
    for _ in 0..rounds {
        for _ in 0..4_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            x ^= x >> 29;
        }
        beat();
    }
    x
}
