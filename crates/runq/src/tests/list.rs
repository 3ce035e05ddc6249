//! Lists and batches.

use super::task::{Node, Task, ids, nodes};
use crate::List;

/// A list of tokens of `nodes`.
fn list_of(nodes: &[Node]) -> List<Task<'_>> {
    let mut list = List::new();
    nodes.iter().for_each(|node| list.push_back(Task(node)));
    list
}

#[test]
fn first_in_first_out() {
    let nodes = nodes(4);
    let mut list = list_of(&nodes[..3]);
    list.push_front(Task(&nodes[3]));
    assert_eq!(list.len(), 4);
    assert_eq!(list.pop_front().unwrap().0.id, 3);
    assert_eq!(ids(list.take(9)), [0, 1, 2]);
    assert!(list.is_empty() && list.pop_front().is_none());
}

#[test]
fn push_front_of_an_empty_list_is_its_end() {
    let nodes = nodes(3);
    let mut list = List::new();
    list.push_front(Task(&nodes[0]));
    list.push_back(Task(&nodes[1]));
    list.push_back(Task(&nodes[2]));
    assert_eq!(ids(list.take(3)), [0, 1, 2]);
}

#[test]
fn take_cuts_anywhere() {
    let nodes = nodes(5);
    for cut in 0..=6 {
        let mut list = list_of(&nodes);
        let front = list.take(cut);
        assert_eq!((front.len(), list.len()), (cut.min(5), 5 - cut.min(5)));
        assert_eq!(ids(front), (0..cut.min(5)).collect::<Vec<_>>());
        assert_eq!(ids(list.take(5)), (cut.min(5)..5).collect::<Vec<_>>());
    }
}

#[test]
fn append_joins_in_order() {
    let nodes = nodes(6);
    for cut in 0..=6 {
        let mut list = list_of(&nodes[..cut]);
        list.append(list_of(&nodes[cut..]).into());
        assert_eq!(list.len(), 6);
        assert_eq!(ids(list.take(6)), [0, 1, 2, 3, 4, 5]);
    }
}

#[test]
#[should_panic(expected = "a batch was dropped with tokens")]
fn a_batch_may_not_be_lost() {
    let nodes = nodes(1);
    drop(list_of(&nodes).take(1));
}
