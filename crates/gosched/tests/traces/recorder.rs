//! The flight recorder: what is left of a long trace is a whole one.

use crate::go_tools::{self, text, tool};
use crate::programs::TraceFile;
use crate::{Memory, alone, check};
use gosched::trace::{self, FlightRecorder, Region, Task, TraceError};
use gosched::{blocking, channel, go, runtime, thread};
use gosched_trace_format::Kind;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

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

/// Goroutines in each state, over all beginnings and ends: one that waits, one that is in a call, one
/// that computes, and one that nobody has named yet.
struct Standing {
    tell: channel::Sender<()>,
    end_call: std::sync::mpsc::Sender<()>,
    stop: Arc<AtomicBool>,
    all: Vec<thread::JoinHandle<bool>>,
}

impl Standing {
    fn new() -> Standing {
        let (tell, told) = channel::bounded::<()>(0);
        let (end_call, call_ends) = std::sync::mpsc::channel::<()>();
        let stop = Arc::new(AtomicBool::new(false));
        let computes = {
            let stop = stop.clone();
            move || {
                while !stop.load(SeqCst) {
                    (0..1000).for_each(|n| {
                        std::hint::black_box(n);
                    });
                }
                true
            }
        };
        let all = vec![
            go(move || told.recv().is_err()),
            go(move || blocking(|| call_ends.recv().is_err())),
            go(computes),
        ];
        Standing { tell, end_call, stop, all }
    }

    /// A plain thread has it spawned: no trace has seen its creation.
    fn spawn_outside(&mut self) {
        let plain = std::thread::spawn(|| go(|| true));
        self.all.push(plain.join().expect("it does not panic"));
    }

    fn end(self) {
        drop((self.tell, self.end_call));
        self.stop.store(true, SeqCst);
        for one in self.all {
            assert!(one.join().expect("it does not panic"));
        }
    }
}

/// Writes of user's words: so many, from one goroutine each, beside other work.
fn words(count: u64) {
    go(work).join().expect("it does not panic");
    for _ in 0..count {
        go(|| trace::log("a", "word")).join().expect("it does not panic");
    }
}

/// What begins second has only what happened since; what ends first lacks what came later; and both are
/// whole traces, to Go's reader as well.
#[track_caller]
fn both(traces_first: bool) {
    let _alone = alone();
    let go_command = go_tools::go("trace", "-pprof");
    let mut standing = Standing::new();
    let (memory, recorder) = (Memory::default(), FlightRecorder::new().max_bytes(usize::MAX));
    let start_trace = || trace::start(memory.clone()).expect("no trace is on");
    let start_recorder = || recorder.start().expect("no recorder is on");
    let file_of_recorder = || {
        let mut file = Vec::new();
        recorder.write_to(&mut file).expect("a Vec takes everything");
        recorder.stop();
        file
    };
    let file_of_trace = || {
        trace::stop().expect("memory takes everything");
        memory.take()
    };
    if traces_first {
        start_trace()
    } else {
        start_recorder()
    }
    words(1);
    standing.spawn_outside();
    if traces_first {
        start_recorder()
    } else {
        start_trace()
    }
    assert!(matches!(trace::start(std::io::sink()), Err(TraceError::AlreadyOn)));
    assert!(matches!(FlightRecorder::new().start(), Err(TraceError::AlreadyOn)));
    words(10);
    standing.spawn_outside();
    // The second one ends first, then the first one.
    let second = if traces_first { file_of_recorder() } else { file_of_trace() };
    assert!(trace::is_enabled());
    words(100);
    standing.end();
    let first = if traces_first { file_of_trace() } else { file_of_recorder() };
    assert!(!trace::is_enabled());
    for (name, file, words) in [("first", first, 111), ("second", second, 10)] {
        let verified = check(&file);
        assert_eq!(verified.count(Kind::UserLog), words, "{name}");
        assert!(verified.count(Kind::GCBegin) >= 1 && verified.count(Kind::ProcsChange) >= 1);
        if let Some(go) = &go_command {
            let kept = TraceFile::new(&format!("both-{name}-{traces_first}"));
            fs::write(&kept.0, &file).expect("the target folder takes it");
            let parsed = text(&tool(go, "trace", &["-d=parsed", kept.path()]));
            assert_eq!(parsed.matches("Category=\"a\"").count() as u64, words, "{name}");
        }
    }
}

#[test]
fn a_trace_beside_a_recorder() {
    both(false);
}

#[test]
fn a_recorder_beside_a_trace() {
    both(true);
}

/// Each ends in the way of the other, and the first one first.
#[test]
fn one_after_the_other_without_a_gap() {
    let _alone = alone();
    let standing = Standing::new();
    let (memory, recorder) = (Memory::default(), FlightRecorder::new());
    recorder.start().expect("nothing is on");
    let mut told = 0;
    for round in 0..6 {
        trace::start(memory.clone()).expect("no trace is on");
        words(1);
        recorder.stop();
        words(2);
        recorder.start().expect("no recorder is on");
        words(4);
        trace::stop().expect("memory takes everything");
        let verified = check(&memory.take());
        assert_eq!(verified.count(Kind::UserLog), 7, "round {round}");
        assert!(verified.generations >= 3);
        let mut file = Vec::new();
        recorder.write_to(&mut file).expect("a Vec takes everything");
        told += check(&file).count(Kind::UserLog);
    }
    assert_eq!(told, 6 * 4);
    standing.end();
}

/// The failure of one is not the other's.
#[test]
fn a_writer_that_fails_beside_a_recorder() {
    let _alone = alone();
    let recorder = FlightRecorder::new();
    recorder.start().expect("nothing is on");
    trace::start(crate::errors::Full).expect("no trace is on");
    words(1);
    let error = trace::stop().expect_err("nothing can be written");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    words(1);
    let mut file = Vec::new();
    recorder.write_to(&mut file).expect("a Vec takes everything");
    assert_eq!(check(&file).count(Kind::UserLog), 2);
    recorder.stop();
    assert!(!trace::is_enabled());
}
