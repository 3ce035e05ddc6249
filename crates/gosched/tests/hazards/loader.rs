//! The loader's lock, which every new thread needs, held by a goroutine that waits.

use crate::child::run;

/// A monitor that had to wait for the lock itself would never begin, and nobody would get on. When
/// its thread gets a CPU for the first time is the kernel's business, hence some rounds.
#[test]
fn the_monitor_begins_without_the_loader() {
    for _ in 0..10 {
        let ended = run("procs=1", "hazard_loader", &[]);
        if ended.is_skipped() {
            return;
        }
        assert_eq!(ended.number("byte"), 7);
    }
}
