//! Files of the kernel's with anything in them.

use crate::tree::{ONE, TWO, Tree};
use gosched_topology::{Containers, CpuSet, Root, Topology, Watch, look_once};

#[path = "../../../../testprogs/fuzz.rs"]
mod fuzz;

/// The files, one line each, and what is in them: a form in which one input is a whole tree.
const FILES: [&str; 9] = [
    "/proc/self/status",
    "/sys/devices/system/cpu/online",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/sys/fs/cgroup/a/cpu.max",
    "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us",
    "/sys/devices/system/node/node0/cpulist",
    "/sys/devices/system/node/node0/distance",
];
/// Between two files.
const END: u8 = 0;

fn tree(texts: [&str; FILES.len()]) -> Vec<u8> {
    texts.join("\0").into_bytes()
}

/// Whether there is a quota, and no more processors than CPUs in any case.
#[test]
fn damaged_files_end_nothing() {
    let tree_of = |cgroup: &str, mounts: &str, max: &str, quota: &str| {
        let status = "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n";
        tree([status, "0-7\n", cgroup, mounts, max, quota, "100000\n", "0-3\n", "10 20\n"])
    };
    let both = [ONE, TWO].join("\n");
    let good = [
        tree_of("0::/a\n", TWO, "300000 100000\n", ""),
        tree_of("5:cpu,cpuacct:/a\n", ONE, "", "250000\n"),
        tree_of("5:cpu:/a\n0::/a\n", &both, "max 100000\n", "50000\n"),
    ];
    let folder = Tree::in_memory();
    let mut before = vec![Vec::new(); FILES.len()];
    let good: Vec<&[u8]> = good.iter().map(Vec::as_slice).collect();
    fuzz::run("machine", 300, &good, |input| {
        let mut texts = input.split(|byte| *byte == END);
        for (path, old) in FILES.iter().zip(&mut before) {
            let text = texts.next().unwrap_or_default();
            if old != text {
                folder.file(path, text);
                *old = text.to_vec();
            }
        }
        let root = Root::at(folder.folder());
        let seen = look_once(&root, Containers::Count);
        assert!(seen.procs >= 1, "at least one");
        let followed = Watch::open(&root, Containers::Count).look();
        assert!(followed.is_none_or(|followed| followed.procs == seen.procs), "{followed:?}");
        let topology = Topology::read(&root);
        for (one, other) in topology.cpus().iter().zip(topology.cpus().iter().rev()) {
            let _ = topology.nearness(*one, *other);
        }
        seen.quota.is_some()
    });
}

#[test]
fn damaged_lists_end_nothing() {
    let good: [&[u8]; 4] = [b"0", b"0-3,8-11\n", b"1,3,5", b"0-63:2/4"];
    let good: Vec<&[u8]> = good.into_iter().filter(|list| parse(list)).collect();
    fuzz::run("lists", 3_000, &good, parse);
}

fn parse(list: &[u8]) -> bool {
    std::str::from_utf8(list).ok().and_then(CpuSet::parse).is_some_and(|set| !set.is_empty())
}
