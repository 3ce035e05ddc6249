//! What is read from the machine that runs the tests.

use gosched_topology::{Containers, Quotas, Root, Topology, Watch, allowed_cpus, look_once};
use std::path::{Path, PathBuf};
use std::{fs, process};

#[test]
fn this_machine() {
    let root = Root::system();
    let allowed = allowed_cpus(&root).expect("a thread has a mask");
    let topology = Topology::read(&root);
    assert_eq!(topology.cpus().len(), allowed.len());
    for cpu in topology.cpus() {
        assert!(topology.nodes()[cpu.node].cpus.contains(cpu.id));
    }
    let seen = look_once(&root, Containers::Count);
    assert_eq!(seen.cpus, allowed.len());
    assert!((1..=seen.cpus).contains(&seen.procs));
}

/// A version 1 group of this test's own, if this process may make one.
struct RealGroup(PathBuf);

impl RealGroup {
    fn make() -> Option<RealGroup> {
        // With a quota around it the kernel refuses larger ones inside.
        let outer = fs::read_to_string("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
        if outer.is_ok_and(|quota| quota.trim() != "-1") {
            return None;
        }
        let path = format!("/sys/fs/cgroup/cpu/gosched-topology-{}", process::id());
        fs::create_dir(&path).ok()?;
        let made = RealGroup(PathBuf::from(path));
        made.0.join("cpu.cfs_quota_us").exists().then_some(made)
    }
}

impl Drop for RealGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The kernel's own files, in a made-up tree: only membership and mount are pretended, so that the
/// test's own process stays where it is.
#[test]
fn a_real_group_of_version_one() {
    let Some(group) = RealGroup::make() else {
        println!("SKIPPED: no writable cgroup v1 without a quota at /sys/fs/cgroup/cpu");
        return;
    };
    let name = group.0.file_name().expect("it has a name").to_str().expect("text").to_owned();
    let tree = crate::tree::Tree::new();
    tree.cpus("0-7").cgroups(&format!("1:cpu:/{name}\n"), &[crate::tree::ONE]);
    fs::create_dir_all(tree.folder().join("sys/fs/cgroup")).expect("a folder");
    let link = tree.folder().join("sys/fs/cgroup/cpu");
    std::os::unix::fs::symlink(Path::new("/sys/fs/cgroup/cpu"), link).expect("a link");
    let watch = Watch::open(&Root::at(tree.folder()), Containers::Count);
    let quota = |text: &str| fs::write(group.0.join("cpu.cfs_quota_us"), text).expect("writable");
    for (text, procs) in [("-1", 8), ("300000", 3), ("50000", 2), ("450000", 5), ("-1", 8)] {
        quota(text);
        assert_eq!(watch.look().map(|seen| seen.procs), Some(procs), "{text}");
    }
    assert!(Quotas::open(&Root::at(tree.folder())).groups().count() >= 1);
}
