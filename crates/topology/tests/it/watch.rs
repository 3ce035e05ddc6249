//! Following changes in files that stay open.

use crate::tree::{ONE, TWO, Tree};
use gosched_topology::{Containers, Root, Watch};

fn watch(tree: &Tree) -> Watch {
    Watch::open(&Root::at(tree.folder()), Containers::Count)
}

#[track_caller]
fn sees(watch: &Watch, procs: usize) {
    assert_eq!(watch.look().expect("there are CPUs").procs, procs);
}

#[test]
fn a_quota_that_changes() {
    let tree = Tree::new();
    tree.cpus("0-7").cgroups("0::/a/b\n", &[TWO]).max("/a/b", "max 100000").max("/a", "max 100000");
    let watch = watch(&tree);
    sees(&watch, 8);
    tree.max("/a/b", "300000 100000");
    sees(&watch, 3);
    // A parent's counts as well.
    tree.max("/a", "200000 100000");
    sees(&watch, 2);
    tree.max("/a", "max 100000").max("/a/b", "max 100000");
    sees(&watch, 8);
    assert!(!watch.is_stale());
}

#[test]
fn a_mask_that_changes() {
    let tree = Tree::new();
    tree.cpus("0-7").cgroups("5:cpu:/a\n", &[ONE]).cfs("/a", "500000", "100000");
    let watch = watch(&tree);
    sees(&watch, 5);
    tree.cpus("1-3");
    sees(&watch, 3);
    tree.cpus("");
    assert_eq!(watch.look(), None);
}

#[test]
fn a_process_that_moves() {
    let tree = Tree::new();
    tree.cpus("0-7")
        .cgroups("0::/a\n", &[TWO])
        .max("/a", "300000 100000")
        .max("/b", "400000 100000");
    let before = watch(&tree);
    tree.cgroups("0::/b\n", &[TWO]);
    assert!(before.is_stale());
    sees(&before, 3);
    sees(&watch(&tree), 4);
}

#[test]
fn quotas_that_are_not_to_count() {
    let tree = Tree::new();
    tree.cpus("0-7").cgroups("0::/a\n", &[TWO]).max("/a", "300000 100000");
    let watch = Watch::open(&Root::at(tree.folder()), Containers::Ignored);
    sees(&watch, 8);
    tree.cgroups("0::/b\n", &[TWO]);
    assert!(!watch.is_stale());
}
