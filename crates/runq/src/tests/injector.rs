//! The injector on one thread.

use super::task::{Task, ids, nodes};
use crate::Injector;

#[test]
fn the_oldest_comes_first() {
    let nodes = nodes(5);
    let injector = Injector::new();
    assert!(injector.is_empty() && injector.take_all().is_empty());
    for round in [0..1, 1..3, 0..5] {
        round.clone().for_each(|id| injector.push(Task(&nodes[id])));
        assert!(!injector.is_empty());
        let taken = injector.take_all();
        assert_eq!(taken.len(), round.len());
        assert_eq!(ids(taken), round.collect::<Vec<_>>());
        assert!(injector.is_empty());
    }
}
