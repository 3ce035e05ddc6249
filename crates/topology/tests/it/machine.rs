//! Neighbours in made-up trees.

use crate::tree::Tree;
use gosched_topology::Nearness::{Cache, Core, Far, Node};
use gosched_topology::{Nearness, Root, Topology};

fn read(tree: &Tree) -> Topology {
    Topology::read(&Root::at(tree.folder()))
}

#[track_caller]
fn near(topology: &Topology, one: u32, other: u32, expected: Nearness) {
    let find = |id| *topology.cpus().iter().find(|cpu| cpu.id == id).expect("allowed");
    assert_eq!(topology.nearness(find(one), find(other)), expected, "{one} and {other}");
    assert_eq!(topology.nearness(find(other), find(one)), expected, "{other} and {one}");
}

#[test]
fn nothing_is_known() {
    let tree = Tree::new();
    let topology = read(&tree);
    assert_eq!(topology.cpus().len(), 1);
    assert_eq!(topology.nodes().len(), 1);
    tree.cpus("0-3");
    let topology = read(&tree);
    assert_eq!((topology.cpus().len(), topology.nodes().len()), (4, 1));
    near(&topology, 0, 3, Cache);
}

#[test]
fn one_two_four_and_eight_nodes() {
    for nodes in [1, 2, 4, 8] {
        let tree = Tree::new();
        tree.nodes(nodes, 2);
        let topology = read(&tree);
        assert_eq!(topology.nodes().len(), nodes as usize);
        assert_eq!(topology.cpus().len(), 2 * nodes as usize);
        near(&topology, 0, 1, Cache);
        if nodes > 1 {
            near(&topology, 0, 2 * nodes - 1, Far(21));
        }
    }
}

#[test]
fn distances() {
    let tree = Tree::new();
    tree.nodes(4, 1);
    tree.node(0, "0", "10 12 32 32\n").node(1, "1", "12 10 32 32\n");
    tree.node(2, "2", "32 32 10 12\n").node(3, "3", "32 32 12 10\n");
    let topology = read(&tree);
    near(&topology, 0, 1, Far(12));
    near(&topology, 0, 2, Far(32));
    near(&topology, 2, 3, Far(12));
}

#[test]
fn siblings_and_caches() {
    // Two caches of two cores of two threads, numbered as usual: siblings are far apart.
    let tree = Tree::new();
    tree.cpus("0-7");
    for cpu in 0..8 {
        tree.siblings(cpu, &format!("{},{}", cpu % 4, cpu % 4 + 4));
        tree.cache(cpu, 2, &format!("{cpu}"));
        tree.cache(cpu, 3, if cpu % 4 < 2 { "0-1,4-5" } else { "2-3,6-7" });
        // `index0` and `index1` are of the first level.
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
        for index in ["index0", "index1"] {
            tree.file(&format!("{folder}/{index}/level"), "1\n");
            tree.file(&format!("{folder}/{index}/shared_cpu_list"), format!("{cpu}\n"));
        }
    }
    let topology = read(&tree);
    near(&topology, 0, 4, Core);
    near(&topology, 0, 1, Cache);
    near(&topology, 0, 5, Cache);
    near(&topology, 0, 2, Node);
    let order: Vec<_> = topology.cpus().iter().map(|cpu| cpu.id).collect();
    assert_eq!(order, [0, 4, 1, 5, 2, 6, 3, 7]);
}

#[test]
fn sparse_numbers_and_offline_cpus() {
    let tree = Tree::new();
    tree.cpus("2-3,40-41");
    tree.file("/sys/devices/system/cpu/online", "0-3,40");
    tree.file("/sys/devices/system/node/online", "1,4,9");
    tree.node(1, "0-3", "10 15 20").node(4, "", "15 10 25").node(9, "40-41", "20 25 10");
    let topology = read(&tree);
    assert_eq!(topology.cpus().iter().map(|cpu| cpu.id).collect::<Vec<_>>(), [2, 3, 40]);
    assert_eq!(topology.nodes().iter().map(|node| node.id).collect::<Vec<_>>(), [1, 9]);
    assert_eq!(topology.nodes()[0].distances, [10, 20]);
    near(&topology, 2, 3, Cache);
    near(&topology, 2, 40, Far(20));
}

#[test]
fn a_mask_of_one_node_only() {
    let tree = Tree::new();
    tree.nodes(4, 2).file("/proc/self/status", "Cpus_allowed_list:\t4-5\n");
    let topology = read(&tree);
    assert_eq!(topology.nodes().len(), 1);
    assert_eq!(topology.nodes()[0].id, 2);
}

#[test]
fn garbled_files() {
    let tree = Tree::new();
    tree.nodes(2, 2);
    tree.node(0, "0-1", "ten 20").node(1, "2-3", "20");
    near(&read(&tree), 0, 2, Far(20));
    tree.node(0, "x", "").node(1, "2-1", "");
    assert_eq!(read(&tree).nodes().len(), 1);
    // Two nodes claim the same CPUs.
    tree.node(0, "0-3", "10 20").node(1, "0-3", "20 10");
    let topology = read(&tree);
    assert_eq!((topology.cpus().len(), topology.nodes().len()), (4, 1));
    // Siblings of another node, a CPU that does not share its own cache.
    tree.nodes(2, 2).siblings(0, "2-3").cache(1, 3, "7");
    assert_eq!(read(&tree).cpus().len(), 4);
    tree.file("/sys/devices/system/cpu/online", "none");
    tree.file("/sys/devices/system/node/node99999999999/cpulist", "0");
    tree.file("/sys/devices/system/node/nodes/cpulist", "0");
    assert_eq!(read(&tree).nodes().len(), 2);
}
