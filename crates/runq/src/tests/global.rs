//! The global queue on one thread.

use super::task::{Node, Task, ids, nodes};
use crate::{BATCH_MAX, Global, List};

/// A queue of tokens of `nodes`.
fn queue_of(nodes: &[Node]) -> Global<Task<'_>> {
    let global = Global::new();
    nodes.iter().for_each(|node| global.push_back(Task(node)));
    global
}

#[test]
fn first_in_first_out() {
    let nodes = nodes(4);
    let global = queue_of(&nodes[..1]);
    let mut list = List::new();
    list.push_back(Task(&nodes[1]));
    list.push_back(Task(&nodes[2]));
    global.append(list.into());
    global.push_front(Task(&nodes[3]));
    assert_eq!(global.len(), 4);
    assert_eq!(global.pop_front().unwrap().0.id, 3);
    assert_eq!(ids(global.take_all()), [0, 1, 2]);
    assert!(global.is_empty() && global.pop_front().is_none());
    assert!(global.take_share(1).is_empty() && global.take_all().is_empty());
}

#[test]
fn shares_are_those_of_go() {
    // Length, processors, share: min(len, len / procs + 1, 128).
    const TABLE: [(usize, usize, usize); 9] = [
        (0, 4, 0),
        (1, 1, 1),
        (1, 4, 1),
        (3, 4, 1),
        (8, 4, 3),
        (10, 2, 6),
        (127, 1, 127),
        (128, 1, 128),
        (1000, 4, 128),
    ];
    assert_eq!(BATCH_MAX, 128);
    let nodes = nodes(1000);
    for (len, procs, share) in TABLE {
        let global = queue_of(&nodes[..len]);
        let taken = ids(global.take_share(procs));
        assert_eq!(taken, (0..share).collect::<Vec<_>>(), "of {len} for one of {procs}");
        assert_eq!(global.len(), len - share);
        assert_eq!(global.take_all().count(), len - share);
    }
}
