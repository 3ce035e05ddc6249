//! Sets of CPUs and the affinity mask.

use crate::tree::Tree;
use gosched_topology::{CpuSet, Root, allowed_cpus};

#[track_caller]
fn set(list: &str, cpus: &[u32]) {
    let set = CpuSet::parse(list).expect("a list");
    assert_eq!(set.iter().collect::<Vec<_>>(), cpus, "{list:?}");
    assert_eq!(set.len(), cpus.len());
    assert_eq!(set.is_empty(), cpus.is_empty());
}

#[test]
fn lists() {
    set("", &[]);
    set("\n", &[]);
    set("0\n", &[0]);
    set("0-3", &[0, 1, 2, 3]);
    set("1,3,5-6\n", &[1, 3, 5, 6]);
    set("65-66,130", &[65, 66, 130]);
    set("3,1-2,2", &[1, 2, 3]);
    set("8191", &[8191]);
}

#[test]
fn what_is_no_list() {
    for text in
        ["x", "1-", "-1", "3-1", "1,,2", ",", "0x1", "1 2", "99999999", "0-4294967295", "1-2-3"]
    {
        assert_eq!(CpuSet::parse(text), None, "{text:?}");
    }
    assert_eq!(CpuSet::parse("18446744073709551616"), None);
}

#[test]
fn a_set_is_written_as_it_is_read() {
    for list in ["", "0", "0-1", "0,2", "1-3,64-66,200"] {
        assert_eq!(CpuSet::parse(list).expect("a list").to_string(), list);
    }
}

#[test]
fn the_mask_of_a_made_up_process() {
    let tree = Tree::new();
    tree.cpus("1,4-6");
    let allowed = allowed_cpus(&Root::at(tree.folder())).expect("it has a mask");
    assert_eq!(allowed.to_string(), "1,4-6");
}

#[test]
fn a_mask_that_is_missing_or_garbled() {
    let tree = Tree::new();
    let root = Root::at(tree.folder());
    assert_eq!(allowed_cpus(&root), None);
    for list in ["", "x", "5-2", "0-99999999"] {
        tree.cpus(list);
        assert_eq!(allowed_cpus(&root), None, "{list:?}");
    }
    tree.file("/proc/self/status", [0xff, 0xfe, b'\n', 0]);
    assert_eq!(allowed_cpus(&root), None);
}
