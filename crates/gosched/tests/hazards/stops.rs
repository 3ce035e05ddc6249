//! Stopping the world while goroutines compute under the allocator's locks.

use crate::child::run;

#[test]
fn the_world_stops_beside_hogs_and_ten_thousand() {
    let ended = run("", "hazard_stops", &[]);
    assert_eq!(ended.number("stops"), 200);
    assert_eq!(ended.number("ended"), 10_000);
    assert!(ended.number("chunks") > 0);
}
