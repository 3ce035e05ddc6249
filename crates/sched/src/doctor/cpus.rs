//! CPUs, their neighbourhood, and the quotas.

use super::Fact;
use crate::config::Settled;
use crate::scheduler::SCHEDULER;
use gosched_topology::{Containers, CpuSet, Quotas, Seen, Topology};
use std::collections::BTreeSet;

pub(super) fn facts(settled: &Settled, seen: Seen, topology: &Topology) -> Vec<Fact> {
    let mut facts = vec![of_mask(topology)];
    facts.extend(of_neighbours(topology));
    facts.extend(of_quotas(settled, seen));
    facts
}

fn of_mask(topology: &Topology) -> Fact {
    let set: CpuSet = topology.cpus().iter().map(|cpu| cpu.id).collect();
    Fact::new("CPUs to run on", format!("{} ({set})", set.len()))
}

fn of_neighbours(topology: &Topology) -> Vec<Fact> {
    let cores: BTreeSet<u32> = topology.cpus().iter().map(|cpu| cpu.core).collect();
    let caches: BTreeSet<u32> = topology.cpus().iter().map(|cpu| cpu.cache).collect();
    let nodes = topology.nodes();
    let mut facts = vec![
        Fact::new("cores", cores.len().to_string()),
        Fact::new("shared L3 caches", caches.len().to_string()),
        Fact::new("NUMA nodes", nodes.len().to_string()),
    ];
    if nodes.len() > 1 {
        facts.extend(nodes.iter().map(|node| {
            let distances: Vec<_> = node.distances.iter().map(u32::to_string).collect();
            let distances = distances.join(" ");
            Fact::new("a node", format!("{}: CPUs {}, distances {distances}", node.id, node.cpus))
        }));
    }
    facts
}

fn of_quotas(settled: &Settled, seen: Seen) -> Vec<Fact> {
    if settled.sight.containers == Containers::Ignored {
        return vec![Fact::new("CPU quota", "not looked at").judged(
            false,
            "GOSCHED=containermaxprocs=0 or the program says so; without it a quota counts",
        )];
    }
    let quotas = Quotas::open(&settled.sight.root);
    let mut facts: Vec<Fact> = quotas
        .groups()
        .map(|(path, quota)| {
            let quota = quota.map_or_else(|| "no quota".into(), |quota| format!("{quota} CPUs"));
            Fact::new("a cgroup", format!("{}: {quota}", path.display()))
        })
        .collect();
    if facts.is_empty() {
        facts.push(Fact::new("cgroups", "none with a controller of CPU time"));
    }
    let procs = SCHEDULER.procs() as usize;
    let found = match seen.quota {
        None => "none".into(),
        Some(quota) => format!("{quota} CPUs, the strictest of the groups"),
    };
    let fits = seen.quota.is_none_or(|quota| quota.cpus_rounded_up() >= procs);
    facts.push(Fact::new("CPU quota", found).judged(
        fits,
        "less than GOMAXPROCS: when that many goroutines compute, the kernel stops all of them for \
         the rest of each period; raise the quota, or lower GOMAXPROCS",
    ));
    facts
}
