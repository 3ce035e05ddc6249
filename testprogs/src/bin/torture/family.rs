//! Goroutines that begin goroutines, and threads.

use crate::{acts, is_over, pulse};
use gosched::thread;
use std::cell::Cell;
use testprogs::random::Random;

std::thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Children that act as well, once.
pub(crate) fn spawn_join(random: &mut Random) {
    if is_over() {
        return;
    }
    let children: Vec<_> = (0..random.below(6))
        .map(|i| {
            let (mut child, value) = (random.fork(), random.bits());
            let acts = random.below(8) == 0;
            let handle = gosched::go(move || {
                if acts {
                    acts::once(&mut child);
                }
                pulse::compute(2, value);
                [value.wrapping_add(i); 20]
            });
            (i, value, handle)
        })
        .collect();
    for (i, value, handle) in children {
        assert_eq!(handle.join().expect("it does not panic"), [value.wrapping_add(i); 20]);
    }
    if random.below(20) == 0 {
        let value = random.bits();
        let plain =
            std::thread::spawn(move || gosched::go(move || value).join().expect("no panic"));
        assert_eq!(plain.join().expect("no panic"), value);
    }
    let mut numbers = [0; 4];
    thread::scope(|scope| {
        for (i, number) in numbers.iter_mut().enumerate() {
            scope.spawn(move || *number = i + 1);
        }
    });
    assert_eq!(numbers, [1, 2, 3, 4]);
}
