//! Levels of made-up machines.

use super::{LEVELS_OF_A_NODE, Levels};
use crate::config::Numa;
use gosched_topology::{Root, Topology};

#[path = "../../../topology/tests/it/tree.rs"]
mod tree;

fn levels(tree: &tree::Tree) -> Option<Levels> {
    Levels::of(&Topology::read(&Root::at(tree.folder())), Numa::On)
}

#[test]
fn where_all_are_alike_there_are_none() {
    let tree = tree::Tree::new();
    tree.cpus("0-3");
    assert!(levels(&tree).is_none());
    tree.nodes(1, 8);
    assert!(levels(&tree).is_none());
    // Siblings alone make no difference.
    tree.siblings(0, "0,4").siblings(4, "0,4");
    assert!(levels(&tree).is_none());
}

#[test]
fn caches_of_one_node() {
    let tree = tree::Tree::new();
    tree.nodes(1, 4);
    for cpu in 0..4 {
        tree.cache(cpu, 3, if cpu < 2 { "0-1" } else { "2-3" });
    }
    let levels = levels(&tree).expect("two caches");
    let between =
        |one: usize, other: usize| levels.between(levels.places[one], levels.places[other]);
    assert_eq!([between(0, 1), between(0, 2), between(3, 2)], [0, 1, 0]);
    assert_eq!([levels.reach(1), levels.reach(4)], [LEVELS_OF_A_NODE; 2]);
}

#[test]
fn thieves_go_from_near_to_far() {
    let tree = tree::Tree::new();
    tree.nodes(4, 2);
    tree.node(0, "0-1", "10 12 32 21").node(1, "2-3", "12 10 32 32");
    let levels = levels(&tree).expect("four nodes");
    let from_first: Vec<u32> =
        levels.places.iter().map(|place| levels.between(levels.places[0], *place)).collect();
    assert_eq!(from_first, [0, 0, 2, 2, 4, 4, 3, 3]);
    // The first two rounds stay on the node, the others reach everybody.
    assert_eq!([1, 2, 3, 4].map(|round| levels.reach(round)), [2, 2, 5, 5]);
}
