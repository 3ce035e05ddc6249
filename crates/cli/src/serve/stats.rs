//! The runtime's counters as JSON.

use gosched::runtime;
use serde_json::json;

pub(crate) fn json() -> String {
    let counters = runtime::counters();
    let stats = json!({
        "goroutines": runtime::num_goroutine(),
        "procs": runtime::gomaxprocs(0),
        "cpus": runtime::num_cpu(),
        "threads": counters.machines,
        "scheduled": counters.scheduled,
        "direct_switches": counters.direct_switches,
        "steals": counters.steals,
        "declared_hand_offs": counters.declared_hand_offs,
        "undeclared_hand_offs": counters.undeclared_hand_offs,
        "runs_without_processor": counters.runs_without_processor,
        "polls": counters.polls,
        "poll_sleeps": counters.poll_sleeps,
        "collections": counters.collections,
        "panics": runtime::panics(),
    });
    format!("{stats}\n")
}
