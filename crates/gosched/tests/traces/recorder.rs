//! The flight recorder: what is left of a long trace is a whole one.

use crate::{alone, check};
use gosched::trace::{self, FlightRecorder, Region, Task};
use gosched::{blocking, channel, go, runtime, thread};
use gosched_trace_format::Kind;

/// Work of each kind, to the end.
fn work() {
    let (sender, receiver) = channel::bounded(0);
    let producer = go(move || (0..50).for_each(|n| sender.send(n).expect("it is received")));
    assert_eq!(receiver.iter().sum::<i32>(), 49 * 50 / 2);
    producer.join().expect("it does not panic");
    let task = Task::new("work");
    let _region = task.region("inside");
    blocking(|| std::hint::black_box(1));
    (0..10).for_each(|_| thread::yield_now());
    runtime::gosched();
    runtime::gc();
}

#[test]
fn each_file_stands_for_itself() {
    let _alone = alone();
    // Nothing but the last generation fits.
    let recorder = FlightRecorder::new().max_bytes(1);
    recorder.start().expect("nothing is on");
    // What goes on over all generations.
    let (tell, told) = channel::bounded::<()>(0);
    let waits = go(move || told.recv().is_err());
    let (end_call, call_ends) = std::sync::mpsc::channel::<()>();
    let in_call = go(move || blocking(|| call_ends.recv().is_err()));
    for round in 0..10 {
        go(work).join().expect("it does not panic");
        let mut file = Vec::new();
        recorder.write_to(&mut file).expect("a Vec takes everything");
        let verified = check(&file);
        assert_eq!(verified.generations, 1, "round {round}");
        assert!(verified.count(Kind::GoCreate) >= 2);
    }
    drop((tell, end_call));
    assert!(waits.join().expect("it does not panic"));
    assert!(in_call.join().expect("it does not panic"));
    let mut file = Vec::new();
    recorder.write_to(&mut file).expect("a Vec takes everything");
    assert!(check(&file).count(Kind::GoDestroy) >= 1);
    recorder.stop();
    assert!(!recorder.is_enabled());
    assert!(recorder.write_to(Vec::new()).is_err());
}

#[test]
fn it_keeps_what_fits() {
    let _alone = alone();
    let recorder = FlightRecorder::new();
    recorder.start().expect("nothing is on");
    let mut sizes = Vec::new();
    for _ in 0..4 {
        go(work).join().expect("it does not panic");
        let mut file = Vec::new();
        recorder.write_to(&mut file).expect("a Vec takes everything");
        sizes.push(check(&file).generations);
    }
    assert!(sizes.is_sorted() && sizes[0] >= 1, "{sizes:?}");
    // A recorder that is dropped ends.
    drop(recorder);
    assert!(!trace::is_enabled());
}

#[test]
fn regions_on_both_sides_of_a_beginning() {
    let _alone = alone();
    let (outer, recorder) = (Region::new("outer"), FlightRecorder::new());
    go(move || {
        let before = Region::new("before");
        recorder.start().expect("nothing is on");
        let _inside = Region::new("inside");
        drop(before);
        let mut file = Vec::new();
        recorder.write_to(&mut file).expect("a Vec takes everything");
        assert_eq!(check(&file).count(Kind::UserRegionBegin), 1);
    })
    .join()
    .expect("it does not panic");
    drop(outer);
}
