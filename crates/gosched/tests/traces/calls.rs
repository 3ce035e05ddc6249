//! Declared calls for which machines give their processors away by themselves.

use crate::{Memory, alone, check};
use gosched::{blocking, go, runtime, thread, trace};
use gosched_trace_format::Kind;
use std::io::{Read, pipe};
use std::sync::Arc;
use std::time::Duration;

const CALLS: u64 = 64;

/// Each gives the processor to the next one, all but the first two. In the trace it is taken from a thread
/// in a call, as if the monitor had come.
#[test]
fn processors_that_are_given_away() {
    let _alone = alone();
    let procs = runtime::gomaxprocs(1);
    let (reader, writer) = pipe().expect("a pipe");
    let reader = Arc::new(reader);
    let (first, second) = (Memory::default(), Memory::default());
    trace::start(first.clone()).expect("no trace is on");
    let before = runtime::counters().prompt_hand_offs;
    let calls: Vec<_> = (0..CALLS)
        .map(|_| {
            let reader = reader.clone();
            go(move || blocking(|| reader.as_ref().read(&mut [0]).expect("it can be read")))
        })
        .collect();
    while runtime::counters().prompt_hand_offs - before < CALLS / 2 {
        thread::sleep(Duration::from_micros(100));
    }
    trace::stop().expect("memory takes everything");
    // And one that begins while they are in their calls.
    trace::start(second.clone()).expect("no trace is on");
    drop(writer);
    calls.into_iter().for_each(|call| assert_eq!(call.join().expect("it does not panic"), 0));
    trace::stop().expect("memory takes everything");
    runtime::gomaxprocs(procs);
    let steals = check(&first.take()).count(Kind::ProcSteal);
    assert!(steals >= CALLS / 2, "{steals} are in the trace");
    check(&second.take());
}
