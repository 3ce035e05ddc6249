//! Made-up trees of `/proc` and `/sys`. Other crates' tests take this file in as well.
#![allow(dead_code, reason = "each binary uses some of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A folder that a test fills; removed when it is dropped.
pub(crate) struct Tree {
    folder: PathBuf,
}

impl Tree {
    pub(crate) fn new() -> Tree {
        Tree::below(&std::env::temp_dir())
    }

    /// Where there is one, in a file system that has no disk: for files that are written thousands of
    /// times.
    pub(crate) fn in_memory() -> Tree {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Tree::below(memory) } else { Tree::new() }
    }

    fn below(parent: &Path) -> Tree {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("gosched-tree-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let folder = parent.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for the tree");
        Tree { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the file that a system has at the absolute `path`, in place: who has it open sees it.
    pub(crate) fn file(&self, path: &str, text: impl AsRef<[u8]>) -> &Tree {
        let path = self.folder.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("absolute")).expect("its folder");
        fs::write(&path, text).expect("the file");
        self
    }

    /// A process that may run on these CPUs, which are online.
    pub(crate) fn cpus(&self, list: &str) -> &Tree {
        let status = format!("Name:\tsome\nCpus_allowed:\tff\nCpus_allowed_list:\t{list}\nx:\t1\n");
        self.file("/proc/self/status", status).file("/sys/devices/system/cpu/online", list)
    }

    /// Which cgroups hold the process, and where they are mounted.
    pub(crate) fn cgroups(&self, membership: &str, mounts: &[&str]) -> &Tree {
        let others = "22 26 0:21 / /sys rw,nosuid shared:7 - sysfs sysfs rw\ngarbled\n\n";
        let mountinfo = format!("{others}{}\n", mounts.join("\n"));
        self.file("/proc/self/cgroup", membership).file("/proc/self/mountinfo", mountinfo)
    }

    /// The quota of a group, version 2.
    pub(crate) fn max(&self, group: &str, text: &str) -> &Tree {
        self.file(&format!("/sys/fs/cgroup{group}/cpu.max"), text)
    }

    /// The quota of a group, version 1.
    pub(crate) fn cfs(&self, group: &str, quota: &str, period: &str) -> &Tree {
        self.file(&format!("/sys/fs/cgroup/cpu{group}/cpu.cfs_quota_us"), quota);
        self.file(&format!("/sys/fs/cgroup/cpu{group}/cpu.cfs_period_us"), period)
    }

    /// A node with its CPUs and distances.
    pub(crate) fn node(&self, id: u32, cpus: &str, distances: &str) -> &Tree {
        let folder = format!("/sys/devices/system/node/node{id}");
        self.file(&format!("{folder}/cpulist"), cpus);
        self.file(&format!("{folder}/distance"), distances)
    }

    /// Nodes 0 to `nodes`, each with `each` CPUs that share a cache, far from each other.
    pub(crate) fn nodes(&self, nodes: u32, each: u32) -> &Tree {
        self.cpus(&format!("0-{}", nodes * each - 1));
        self.file("/sys/devices/system/node/online", format!("0-{}\n", nodes - 1));
        for node in 0..nodes {
            let distances: Vec<_> =
                (0..nodes).map(|other| if other == node { "10" } else { "21" }).collect();
            let list = format!("{}-{}\n", node * each, node * each + each - 1);
            self.node(node, &list, &distances.join(" "));
            for cpu in node * each..(node + 1) * each {
                self.cache(cpu, 3, &list);
            }
        }
        self
    }

    /// A cache of a CPU, by level, and who shares it.
    pub(crate) fn cache(&self, cpu: u32, level: u32, shared: &str) -> &Tree {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{level}");
        self.file(&format!("{folder}/level"), format!("{level}\n"));
        self.file(&format!("{folder}/shared_cpu_list"), shared)
    }

    /// The threads of a CPU's core.
    pub(crate) fn siblings(&self, cpu: u32, list: &str) -> &Tree {
        self.file(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), list)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Version 2, mounted where it usually is.
pub(crate) const TWO: &str =
    "35 26 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
/// Version 1's controller of CPU time, mounted beside others.
pub(crate) const ONE: &str =
    "36 30 0:31 / /sys/fs/cgroup/cpu rw,nosuid shared:10 - cgroup cgroup rw,cpu,cpuacct";
