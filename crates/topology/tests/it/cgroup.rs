//! Quotas in made-up trees.

use crate::tree::{ONE, TWO, Tree};
use gosched_topology::{Containers, Quotas, Root, look_once};

/// The strictest quota in CPUs, as text.
#[track_caller]
fn quota(tree: &Tree, expected: Option<&str>) {
    let quotas = Quotas::open(&Root::at(tree.folder()));
    let found = quotas.strictest().map(|quota| quota.to_string());
    assert_eq!(found.as_deref(), expected);
}

/// The default of GOMAXPROCS.
#[track_caller]
fn procs(tree: &Tree, expected: usize) {
    assert_eq!(look_once(&Root::at(tree.folder()), Containers::Count).procs, expected);
}

#[test]
fn without_cgroups() {
    let tree = Tree::new();
    tree.cpus("0-7");
    quota(&tree, None);
    procs(&tree, 8);
    tree.cgroups("", &[]);
    quota(&tree, None);
}

#[test]
fn version_two() {
    let tree = Tree::new();
    tree.cpus("0-7").cgroups("0::/a/b\n", &[TWO]).max("/a/b", "150000 100000\n");
    quota(&tree, Some("1.50"));
    procs(&tree, 2);
    tree.max("/a/b", "max 100000\n");
    quota(&tree, None);
    procs(&tree, 8);
}

#[test]
fn version_one() {
    let tree = Tree::new();
    tree.cpus("0-7")
        .cgroups("4:cpu,cpuacct:/a\n3:memory:/b\n", &[ONE])
        .cfs("/a", "300000", "100000");
    quota(&tree, Some("3.00"));
    procs(&tree, 3);
    tree.cfs("/a", "-1\n", "100000\n");
    quota(&tree, None);
}

#[test]
fn small_quotas_count_as_two() {
    for (text, expected) in [
        ("50000 100000", 2),
        ("100000 100000", 2),
        ("150000 100000", 2),
        ("200000 100000", 2),
        ("200001 100000", 3),
        ("1000 1000000", 2),
        ("99999999 100000", 8),
    ] {
        let tree = Tree::new();
        tree.cpus("0-7").cgroups("0::/\n", &[TWO]).max("", text);
        procs(&tree, expected);
        tree.cpus("5");
        procs(&tree, 1);
    }
}

#[test]
fn an_ancestor_may_be_stricter() {
    let tree = Tree::new();
    tree.cpus("0-15").cgroups("0::/a/b/c\n", &[TWO]);
    tree.max("/a/b/c", "max 100000").max("/a", "250000 100000").max("/a/b", "800000 100000");
    quota(&tree, Some("2.50"));
    procs(&tree, 3);
    // The same quota in another period.
    tree.max("/a/b", "20000 10000");
    quota(&tree, Some("2.00"));

    let tree = Tree::new();
    tree.cpus("0-15").cgroups("2:cpu:/a/b\n", &[ONE]);
    tree.cfs("/a/b", "-1", "100000").cfs("/a", "400000", "100000").cfs("", "-1", "100000");
    quota(&tree, Some("4.00"));
}

#[test]
fn groups_are_listed_from_the_inside_out() {
    let tree = Tree::new();
    tree.cgroups("0::/a/b\n", &[TWO]).max("/a/b", "max 1").max("/a", "10 10").max("", "x");
    let quotas = Quotas::open(&Root::at(tree.folder()));
    let groups: Vec<_> = quotas
        .groups()
        .map(|(path, quota)| (path.to_str().expect("text").to_owned(), quota.is_some()))
        .collect();
    let expected = [("/a/b", false), ("/a", true), ("", false)]
        .map(|(path, some)| (format!("/sys/fs/cgroup{path}"), some));
    assert_eq!(groups, expected);
}

#[test]
fn hybrid() {
    // The controller is in version 1; version 2 only names groups, under another path.
    let tree = Tree::new();
    let two = TWO.replace("/sys/fs/cgroup ", "/sys/fs/cgroup/unified ");
    tree.cgroups("0::/user\n1:name=systemd:/user\n5:cpuacct,cpu:/job\n", &[&two, ONE]);
    tree.cfs("/job", "120000", "100000");
    quota(&tree, Some("1.20"));
    // And the other way round.
    tree.cgroups("0::/user\n5:memory:/job\n", &[&two, ONE]);
    tree.file("/sys/fs/cgroup/unified/user/cpu.max", "30 10");
    quota(&tree, Some("3.00"));
}

#[test]
fn controllers_with_similar_names() {
    let tree = Tree::new();
    let cpuset =
        ONE.replace("rw,cpu,cpuacct", "rw,cpuset").replace("cgroup/cpu ", "cgroup/cpuset ");
    tree.cgroups("5:cpuset:/a\n6:cpuacct:/a\n", &[&cpuset, ONE]).cfs("/a", "1", "1");
    tree.file("/sys/fs/cgroup/cpuset/a/cpu.cfs_quota_us", "1");
    quota(&tree, None);
}

#[test]
fn a_container_sees_its_own_group_as_the_mount() {
    // Without a namespace the membership has the whole path, and the mount shows its end.
    let tree = Tree::new();
    let mount = ONE.replace(" / /sys", " /docker/abc /sys");
    tree.cgroups("5:cpu:/docker/abc/inner\n", &[&mount]);
    tree.cfs("/inner", "-1", "100000").cfs("", "700000", "100000");
    quota(&tree, Some("7.00"));
    // Its name is only like the mount's.
    tree.cgroups("5:cpu:/docker/abcdef\n", &[&mount]);
    quota(&tree, None);
}

#[test]
fn cgroup_namespaces() {
    // Both are seen from inside: the group is the root of the namespace.
    let tree = Tree::new();
    tree.cgroups("0::/\n", &[TWO]).max("", "400000 100000");
    quota(&tree, Some("4.00"));
    // The mount is of an outer group; the names between are not known, its quota counts.
    let outer = TWO.replace(" / /sys", " /../.. /sys");
    tree.cgroups("0::/\n", &[&outer]).max("", "600000 100000");
    quota(&tree, Some("6.00"));
    // The process is outside of its namespace, beside it: nothing in the mount holds it.
    tree.cgroups("0::/../other\n", &[TWO]);
    quota(&tree, None);
    // But where an outer mount shows it, it is found.
    let outer = TWO.replace(" / /sys", " /.. /sys");
    tree.cgroups("0::/../other\n", &[&outer]).max("/other", "500000 100000");
    quota(&tree, Some("5.00"));
}

#[test]
fn mounts_of_other_groups_do_not_count() {
    let tree = Tree::new();
    let other = TWO.replace(" / /sys/fs/cgroup ", " /other /mnt/other ");
    tree.cgroups("0::/mine\n", &[&other, TWO]).max("/mine", "400000 100000");
    tree.file("/mnt/other/cpu.max", "100000 100000");
    quota(&tree, Some("4.00"));
}

#[test]
fn names_with_spaces_and_colons() {
    let tree = Tree::new();
    let mount = TWO.replace("/sys/fs/cgroup ", r"/sys/fs/cgroup/a\040b\134 ");
    tree.cgroups("0::/c:d e\n", &[&mount]);
    tree.file(r"/sys/fs/cgroup/a b\/c:d e/cpu.max", "200000 100000");
    quota(&tree, Some("2.00"));
}

#[test]
fn a_removed_group() {
    let tree = Tree::new();
    tree.cgroups("0::/a/gone (deleted)\n", &[TWO]).max("/a", "500000 100000");
    quota(&tree, Some("5.00"));
}

#[test]
fn garbled_files_count_as_missing() {
    for text in ["", "\n", "max", "100000", "x 100000", "100000 x", "100000 0", "-5 100000", " 1 "]
    {
        let tree = Tree::new();
        tree.cgroups("0::/a\n", &[TWO]).max("/a", text).max("", "900000 100000");
        quota(&tree, Some("9.00"));
    }
    for (a, b) in [("", "100000"), ("x", "1"), ("10", ""), ("10", "0"), ("10", "-1")] {
        let tree = Tree::new();
        tree.cgroups("5:cpu:/a\n", &[ONE]).cfs("/a", a, b);
        quota(&tree, None);
    }
    for membership in ["0", "0:", "0::", "::", "0::relative", ":cpu:", "\u{0}\n0::/a:b"] {
        let tree = Tree::new();
        tree.cgroups(membership, &[TWO, ONE]).max("", "900000 100000");
        let _ = Quotas::open(&Root::at(tree.folder())).strictest();
    }
    for mount in
        ["1 2 3 / - cgroup2 x", "1 2 3 / /a", " - ", "a - cgroup x", r"1 2 3 \ \4 - cgroup2 c r"]
    {
        let tree = Tree::new();
        tree.cgroups("0::/a\n5:cpu:/\n", &[mount]);
        quota(&tree, None);
    }
}

#[test]
fn a_very_deep_group_is_no_problem() {
    let tree = Tree::new();
    let path = "/d".repeat(200);
    tree.cgroups(&format!("0::{path}\n"), &[TWO]).max(&path, "500000 100000");
    quota(&tree, Some("5.00"));
}
