//! A model of the global queue:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-runq --release --test loom_global`.
#![cfg(loom)]

mod model;

use std::sync::Arc;

use gosched_runq::{Global, List};
use loom::thread;

use self::model::{assert_all_once, explore, run_all, task};

/// The lock is a stand-in here, so this checks what is done under it. Catches: `Global::finish`
/// that stores the length after it has freed the lock (what is left looks empty).
#[test]
fn puts_against_takes() {
    let taken = explore(|| {
        let global = Arc::new(Global::new());
        let taker = thread::spawn({
            let global = global.clone();
            move || run_all(global.take_share(1))
        });

        let mut batch = List::new();
        batch.push_back(task(0));
        batch.push_back(task(1));
        global.append(batch.into());
        global.push_back(task(2));
        let mine = run_all(global.pop_front());

        let taken = taker.join().unwrap();
        let count = taken.len();
        assert_eq!(global.len(), 3 - mine.len() - count);
        assert_all_once(3, [mine, taken, run_all(global.take_all())]);
        count
    });
    // A share is at most half of a ring, which is small here, and nothing comes singly.
    assert_eq!(taken.into_iter().collect::<Vec<_>>(), [0, 2]);
}
