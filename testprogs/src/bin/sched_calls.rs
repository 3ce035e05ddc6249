//! Declared calls that last and calls that don't: `sched_calls`, with one processor. Prints how many
//! processors machines gave away by themselves, first among as many calls that last, then among as many
//! that are over at once.

use std::io::{PipeReader, Read, pipe};
use std::sync::Arc;

use gosched::{blocking, channel, go, run, runtime, thread};

const CALLS: u64 = 400;

fn main() {
    run(|| {
        let before = runtime::counters();
        call_for_long();
        let between = runtime::counters();
        call_shortly();
        let after = runtime::counters();
        println!("calls={CALLS}");
        println!("handed_off={}", between.declared_hand_offs - before.declared_hand_offs);
        println!("long={}", between.prompt_hand_offs - before.prompt_hand_offs);
        println!("short={}", after.prompt_hand_offs - between.prompt_hand_offs);
    });
}

/// All of them are in their calls at the end: each has been given the processor by the one before.
fn call_for_long() {
    let (reader, writer) = pipe().expect("a pipe");
    let reader = Arc::new(reader);
    let (began, begun) = channel::bounded(CALLS as usize);
    let all: Vec<_> = (0..CALLS)
        .map(|_| {
            let (reader, began) = (reader.clone(), began.clone());
            go(move || {
                began.send(()).expect("it is open");
                blocking(|| read_to_the_end(&reader));
            })
        })
        .collect();
    (0..CALLS).for_each(|_| begun.recv().expect("each sends one"));
    drop(writer);
    all.into_iter().for_each(|one| one.join().expect("it does not panic"));
}

fn read_to_the_end(mut reader: &PipeReader) {
    assert_eq!(reader.read(&mut [0]).expect("a pipe can be read"), 0);
}

/// With another one that waits for the processor at each of them.
fn call_shortly() {
    let one = || {
        for _ in 0..CALLS / 2 {
            blocking(std::process::id);
            thread::yield_now();
        }
    };
    let (first, second) = (go(one), go(one));
    first.join().and(second.join()).expect("they do not panic");
}
