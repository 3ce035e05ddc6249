//! What the runtime has chosen.

use super::Fact;
use crate::config::Settled;
use crate::gomaxprocs::{self, default_procs};
use crate::observe;
use crate::scheduler::SCHEDULER;
use gosched_topology::Seen;

pub(super) fn facts(settled: &Settled) -> Vec<Fact> {
    let procs = SCHEDULER.procs() as usize;
    let slice = match settled.slice_ns {
        u64::MAX => "off".into(),
        ns => format!("{} us", ns / 1_000),
    };
    vec![
        Fact::new("GOMAXPROCS", procs.to_string()).judged(
            procs <= default_procs(),
            "more than CPUs or quota give: its threads wait for each other's CPU",
        ),
        Fact::new("follows changes", if gomaxprocs::is_followed() { "yes" } else { "no" }),
        Fact::new("time slice", slice),
        Fact::new("stops computing code", if settled.async_preempt { "by signal" } else { "no" })
            .judged(settled.async_preempt, "a loop keeps its processor; see asyncpreemptoff"),
        Fact::new("sees blocked threads", if observe::is_possible() { "yes" } else { "late" })
            .judged(
                observe::is_possible(),
                "/proc/self/task/*/syscall can't be read, so that a call that blocks unannounced is \
                 noticed after 50 ms; mount /proc, or let the process read it",
            ),
        Fact::new("a stack's size", format!("{} KiB", settled.class.usable_bytes() / 1024)),
        Fact::new("threads at most", settled.threads_max.to_string()),
        Fact::new("poller", "epoll"),
    ]
}

/// Where the number of processors comes from.
pub(super) fn why(seen: Seen) -> String {
    if !gomaxprocs::is_default() {
        let is_positive = |text: String| text.trim().parse::<usize>().is_ok_and(|n| n > 0);
        return if std::env::var("GOMAXPROCS").is_ok_and(is_positive) {
            "the variable GOMAXPROCS says so".into()
        } else {
            "GOSCHED=procs or the program says so".into()
        };
    }
    let cpus = match seen.cpus {
        1 => "there is 1 CPU in the affinity mask".into(),
        n => format!("there are {n} CPUs in the affinity mask"),
    };
    match seen.quota {
        None => format!("{cpus}, and no cgroup has a quota"),
        Some(quota) if seen.procs == seen.cpus => {
            format!("{cpus}, and the strictest quota, {quota} CPUs, allows as many")
        }
        Some(quota) if quota.cpus_rounded_up() < 2 => {
            format!("{cpus}, and the strictest quota, {quota} CPUs, counts as 2")
        }
        Some(quota) => format!("{cpus}, and the strictest quota is {quota} CPUs, rounded up"),
    }
}
