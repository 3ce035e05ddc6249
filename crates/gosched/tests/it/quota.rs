//! GOMAXPROCS follows quotas and affinity masks.

use crate::child::{Child, Ended};
use crate::tree::{ONE, TWO, Tree};
use std::fs;
use std::path::PathBuf;

fn quota(tree: &Tree, settings: &str, arguments: &[&str]) -> Ended {
    let root = format!("root={},{settings}", tree.folder().to_str().expect("text"));
    Child::new("sched_quota", arguments).env("GOSCHED", &root).run()
}

const LINE: &str = "gosched: GOMAXPROCS is ";

/// The file that holds a group's quota.
fn max(tree: &Tree, group: &str) -> String {
    let folder = tree.folder().to_str().expect("text").to_owned();
    format!("{folder}/sys/fs/cgroup{group}/cpu.max")
}

fn four_cpus() -> Tree {
    let tree = Tree::new();
    tree.cpus("0-3").cgroups("0::/a/b\n", &[TWO]);
    tree.max("/a/b", "100000 100000").max("/a", "max 100000");
    tree
}

#[track_caller]
fn lost_nothing(ended: &Ended, updates: u64) {
    println!("{}", ended.story());
    let figures = ended.figures();
    figures.expect("workers", 40);
    figures.expect("timers_lost", 0);
    figures.expect("goroutines", 1);
    // A look may come while a file is being written, and be followed by another.
    assert!(figures.get("updates") >= updates, "{}", ended.story());
    assert_eq!(ended.err().matches(LINE).count() as u64, figures.get("updates"));
}

#[test]
fn a_quota_that_goes_up_and_down_is_followed() {
    let tree = four_cpus();
    let (inner, outer) = (max(&tree, "/a/b"), max(&tree, "/a"));
    let steps = [
        format!("{inner}=300000 100000=3"),
        format!("{inner}=100000 100000=2"),
        format!("{inner}=max 100000=4"),
        // The parent's.
        format!("{outer}=250000 100000=3"),
    ];
    let ended = quota(&tree, "", &["follow", &steps[0], &steps[1], &steps[2], &steps[3]]);
    lost_nothing(&ended, 4);
    ended.expect_err_parts(&[
        "gosched: GOMAXPROCS is 3 now, was ",
        " (CPUs: 4, quota: 3.00)\ngosched: GOMAXPROCS is ",
        "(CPUs: 4, quota: 1.00)\ngosched: GOMAXPROCS is ",
        "(CPUs: 4, no quota)\ngosched: GOMAXPROCS is 3 now, was 4 (CPUs: 4, quota: 2.50)\n",
    ]);
}

#[test]
fn a_move_to_another_group_is_followed() {
    let tree = four_cpus();
    tree.max("/c", "300000 100000");
    let membership = tree.folder().join("proc/self/cgroup");
    let step = format!("{}=0::/c\n=3", membership.to_str().expect("text"));
    let inner = format!("{}=max 100000=4", max(&tree, "/c"));
    lost_nothing(&quota(&tree, "", &["follow", &step, &inner]), 2);
}

#[test]
fn a_number_that_was_asked_for_stays() {
    let tree = four_cpus();
    let step = format!("{}=max 100000", max(&tree, "/a/b"));
    for (settings, procs) in [("procs=3", 3), ("updatemaxprocs=0", 2), ("containermaxprocs=0", 4)] {
        tree.max("/a/b", "100000 100000");
        let ended = quota(&tree, settings, &["stays", &step]);
        ended.figures().expect("procs", procs);
        ended.figures().expect("updates", 0);
        ended.expect_err("");
    }
}

#[test]
fn calls_and_guards() {
    let ended = quota(&four_cpus(), "", &["calls"]);
    let figures = ended.figures();
    for (key, value) in [
        ("default", 2),
        ("former", 2),
        ("outer", 3),
        ("inner", 2),
        ("outer_again", 3),
        ("undone", 7),
        ("goroutines", 201),
        ("default_again", 2),
    ] {
        figures.expect(key, value);
    }
}

#[test]
fn the_affinity_mask_is_followed() {
    if gosched::runtime::gomaxprocs(0) < 2 {
        println!("SKIPPED: there is one CPU");
        return;
    }
    let ended = Child::new("sched_quota", &["affinity"]).run();
    lost_nothing(&ended, 2);
}

/// Version 1 groups of this test's own, one in the other, if this process may make them.
struct RealGroups {
    outer: PathBuf,
}

impl RealGroups {
    fn make() -> Option<RealGroups> {
        const TOP: &str = "/sys/fs/cgroup/cpu";
        // With a quota around them the kernel refuses larger ones inside.
        let top = fs::read_to_string(format!("{TOP}/cpu.cfs_quota_us"));
        if top.is_ok_and(|quota| quota.trim() != "-1") {
            return None;
        }
        let outer = PathBuf::from(format!("{TOP}/gosched-quota-{}", std::process::id()));
        fs::create_dir(&outer).ok()?;
        let made = RealGroups { outer };
        fs::create_dir(made.inner()).ok()?;
        made.inner().join("cpu.cfs_quota_us").exists().then_some(made)
    }

    fn inner(&self) -> PathBuf {
        self.outer.join("inner")
    }
}

impl Drop for RealGroups {
    fn drop(&mut self) {
        let _ = fs::remove_dir(self.inner());
        let _ = fs::remove_dir(&self.outer);
    }
}

/// The kernel's own groups; only the number of CPUs is made up, so that there is room for changes.
#[test]
fn a_real_quota_is_followed() {
    let Some(groups) = RealGroups::make() else {
        println!("SKIPPED: no writable cgroup v1 without a quota at /sys/fs/cgroup/cpu");
        return;
    };
    let tree = Tree::new();
    let name = groups.outer.file_name().and_then(|name| name.to_str()).expect("text");
    tree.cpus("0-3").cgroups(&format!("1:cpu:/{name}/inner\n"), &[ONE]);
    fs::create_dir_all(tree.folder().join("sys/fs/cgroup")).expect("a folder");
    let link = tree.folder().join("sys/fs/cgroup/cpu");
    std::os::unix::fs::symlink("/sys/fs/cgroup/cpu", link).expect("a link");
    let file = |group: PathBuf, name: &str| group.join(name).to_str().expect("text").to_owned();
    let inner = file(groups.inner(), "cpu.cfs_quota_us");
    let outer = file(groups.outer.clone(), "cpu.cfs_quota_us");
    let steps = [
        // The program enters the group, and is throttled by it from then on.
        format!("{}=0=4", file(groups.inner(), "cgroup.procs")),
        format!("{inner}=100000=2"),
        format!("{inner}=300000=3"),
        format!("{inner}=100000=2"),
        format!("{inner}=-1=4"),
        format!("{outer}=250000=3"),
    ];
    let steps: Vec<&str> = ["follow"].into_iter().chain(steps.iter().map(|s| &**s)).collect();
    lost_nothing(&quota(&tree, "", &steps), 5);
}
