//! Blocking calls, declared and not, beside goroutines that must get on.

use gosched::runtime::Counters;
use gosched::{blocking, go, run, runtime, thread};
use std::io::{PipeReader, Read, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Runs `block` in 50 goroutines, which it keeps in the kernel until all of them are there and a
/// ticker beside them has woken twenty times: that takes processors that go on without them.
fn beside_a_ticker(block: fn(&PipeReader), hand_offs: fn(Counters) -> u64) {
    const COUNT: usize = 50;
    run(move || {
        let before = hand_offs(runtime::counters());
        let (reader, writer) = pipe().unwrap();
        let (reader, entered) = (Arc::new(reader), Arc::new(AtomicUsize::new(0)));
        let blocked: Vec<_> = (0..COUNT)
            .map(|_| {
                let (reader, entered) = (reader.clone(), entered.clone());
                go(move || {
                    entered.fetch_add(1, SeqCst);
                    block(&reader);
                })
            })
            .collect();
        let ticker = go(|| (0..20).for_each(|_| thread::sleep(Duration::from_millis(1))));
        ticker.join().unwrap();
        while entered.load(SeqCst) < COUNT {
            thread::sleep(Duration::from_millis(1));
        }
        // The end of the file for all of them.
        drop(writer);
        blocked.into_iter().for_each(|b| b.join().unwrap());
        let offs = hand_offs(runtime::counters()) - before;
        assert!(offs > 10, "{offs} hand-offs");
    });
}

fn read_to_the_end(mut reader: &PipeReader) {
    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
}

#[test]
fn declared() {
    beside_a_ticker(
        |reader| blocking(|| read_to_the_end(reader)),
        |counters| counters.declared_hand_offs,
    );
}

#[test]
fn undeclared() {
    beside_a_ticker(read_to_the_end, |counters| counters.undeclared_hand_offs);
}

#[test]
fn a_call_that_uses_the_runtime_inside() {
    run(|| {
        let value = blocking(|| {
            thread::sleep(Duration::from_millis(2));
            go(|| 7).join().unwrap()
        });
        assert_eq!(value, 7);
    });
}

/// More goroutines than there are processors, each in a computation that begins where a call ends, and
/// ends when all of them have begun.
#[test]
fn who_computes_after_a_call_is_stopped() {
    run(|| {
        for micros in [10, 100, 1000] {
            let count = 2 * runtime::gomaxprocs(0) + 1;
            let begun = Arc::new(AtomicUsize::new(0));
            let one = |n| {
                let begun = begun.clone();
                go(move || {
                    let call = || std::thread::sleep(Duration::from_micros(micros));
                    if n % 2 == 0 {
                        blocking(call)
                    } else {
                        call()
                    }
                    begun.fetch_add(1, SeqCst);
                    while begun.load(SeqCst) < count {
                        std::hint::spin_loop();
                    }
                })
            };
            let all: Vec<_> = (0..count).map(one).collect();
            all.into_iter().for_each(|g| g.join().unwrap());
        }
    });
}
