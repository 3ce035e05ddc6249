//! Beginnings and ends, also of traces that fail.

use crate::{Memory, alone, check};
use gosched::trace::{self, FlightRecorder, TraceError};
use gosched::{blocking, channel, go, thread};
use gosched_trace_format::Kind;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[test]
fn one_at_a_time() {
    let _alone = alone();
    trace::start(io::sink()).expect("nothing is on");
    assert!(matches!(trace::start(io::sink()), Err(TraceError::AlreadyOn)));
    assert!(trace::is_enabled());
    trace::stop().expect("a sink takes everything");
    trace::stop().expect("there is none");
    assert!(!trace::is_enabled());
}

/// A writer that fails from the start.
pub(crate) struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_writers_error_comes_back() {
    let _alone = alone();
    trace::start(Full).expect("nothing is on");
    go(thread::yield_now).join().expect("it does not panic");
    let error = trace::stop().expect_err("nothing can be written");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(!trace::is_enabled());
    trace::start(io::sink()).expect("nothing is on");
    trace::stop().expect("a sink takes everything");
}

/// An error in the middle ends the trace by itself.
#[test]
fn an_error_in_the_middle() {
    struct Short(usize, std::sync::mpsc::Sender<()>);
    impl Write for Short {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0 += 1;
            match self.0 {
                2 => {
                    self.1.send(()).expect("it is waited for");
                    Err(io::Error::from(io::ErrorKind::BrokenPipe))
                }
                _ => Ok(()),
            }
        }
    }
    let _alone = alone();
    let (tell, told) = std::sync::mpsc::channel();
    trace::start(Short(0, tell)).expect("nothing is on");
    go(thread::yield_now).join().expect("it does not panic");
    told.recv().expect("generations end by themselves");
    while trace::is_enabled() {
        std::thread::yield_now();
    }
    let error = trace::stop().expect_err("it could not be written");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

/// Traces begin and end while goroutines do everything that a trace shows, and threads wake them: each
/// of them is right.
#[test]
fn beginnings_and_ends_in_the_middle_of_everything() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let _alone = alone();
    let goes_on = || !STOP.load(SeqCst);
    let (sender, receiver) = channel::bounded(0);
    let plain = std::thread::spawn(move || while goes_on() && sender.send(1).is_ok() {});
    let receives = go(move || receiver.iter().sum::<u32>());
    let works = [
        go(move || {
            while goes_on() {
                thread::yield_now()
            }
        }),
        go(move || {
            while goes_on() {
                blocking(|| std::thread::sleep(std::time::Duration::from_micros(50)))
            }
        }),
        go(move || {
            while goes_on() {
                std::thread::sleep(std::time::Duration::from_micros(400))
            }
        }),
        go(move || {
            while goes_on() {
                go(|| thread::sleep(std::time::Duration::from_micros(20)))
                    .join()
                    .expect("it does not panic")
            }
        }),
        go(move || {
            while goes_on() {
                (0..10_000).for_each(|n| {
                    std::hint::black_box(n);
                })
            }
        }),
    ];
    let memory = Memory::default();
    for round in 0..12 {
        let file = memory.clone();
        let begin_and_end = move || {
            // Two times in three beside a recorder, which was there before or comes later.
            let recorder = FlightRecorder::new();
            if round % 3 == 1 {
                recorder.start().expect("nothing is on");
            }
            trace::start(file).expect("no trace is on");
            if round % 3 == 2 {
                recorder.start().expect("no recorder is on");
            }
            (0..round).for_each(|_| thread::yield_now());
            if round % 3 != 0 {
                let mut kept = Vec::new();
                recorder.write_to(&mut kept).expect("a Vec takes everything");
                check(&kept);
            }
            trace::stop().expect("memory takes everything");
        };
        // From goroutines and from plain threads.
        if round % 2 == 0 {
            go(begin_and_end).join().expect("it does not panic");
        } else {
            begin_and_end();
        }
        let verified = check(&memory.take());
        assert!(verified.generations >= 1);
        assert!(verified.count(Kind::GoStatusStack) >= 1, "round {round}");
    }
    STOP.store(true, SeqCst);
    works.into_iter().for_each(|work| work.join().expect("it does not panic"));
    plain.join().expect("it does not panic");
    assert!(receives.join().expect("it does not panic") > 0);
}

#[test]
fn without_a_trace_or_a_goroutine_users_words_do_nothing() {
    let _alone = alone();
    let task = trace::Task::new("task");
    task.log("key", "value");
    drop(task.child("child").region("region"));
    trace::start(io::sink()).expect("nothing is on");
    drop(task);
    let _region = trace::Region::new("on a plain thread");
    trace::log("key", "value");
    trace::stop().expect("a sink takes everything");
}
