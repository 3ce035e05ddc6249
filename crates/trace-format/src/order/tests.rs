//! Traces made by hand: one that is right, and each way to break it that the rules know.

use crate::{
    CpuSample, Frame, HEADER, Kind, NO_PROCESSOR, NO_THREAD, Order, Table, Trace, batch_header,
    encode, frequency_batch, sample_batches,
};

/// A thread's events.
type Events<'a> = &'a [(Kind, &'a [u64])];

/// A file with generations from 1 on, in each the batches of threads from 100 on.
fn file(generations: &[&[Events<'_>]]) -> Vec<u8> {
    file_from(1, generations)
}

/// As [`file`], with generations from `first` on.
fn file_from(first: u64, generations: &[&[Events<'_>]]) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    let mut time = 1000;
    for (threads, at) in generations.iter().zip(0..) {
        let number = first + at;
        frequency_batch(&mut out, number, time, 1_000_000_000);
        for (events, thread) in threads.iter().zip(100..) {
            let mut payload = Vec::new();
            for (kind, args) in *events {
                let mut bytes = [0; crate::EVENT_MAX];
                let len = encode(&mut bytes, *kind, 1, args).expect("there is room");
                payload.extend_from_slice(&bytes[..len]);
            }
            batch_header(&mut out, number, thread, time, payload.len());
            out.extend_from_slice(&payload);
        }
        let mut table = Table::new();
        table.string(1, "chan receive");
        table.string(2, "region");
        let frame = Frame { pc: 1, function: "main".into(), file: "main.rs".into(), line: 7 };
        table.stack(1, &[frame]);
        table.write(&mut out, number, time);
        time += 1000;
    }
    out
}

fn check(generations: &[&[Events<'_>]]) -> Result<usize, String> {
    let file = file(generations);
    let trace = Trace::read(&file).map_err(|damaged| damaged.to_string())?;
    let (mut order, mut count) = (Order::new(), 0);
    for generation in &trace.generations {
        order.check(generation, |_, _| count += 1).map_err(|broken| broken.to_string())?;
    }
    Ok(count)
}

#[track_caller]
fn breaks(generations: &[&[Events<'_>]], words: &str) {
    let told = check(generations).expect_err("it is broken");
    assert!(told.contains(words), "{told}");
}

use Kind::*;

/// Processor 0 and goroutine 1 run on thread 100.
const ONE: [(Kind, &[u64]); 2] = [(ProcStatus, &[0, 1]), (GoStatus, &[1, 100, 2])];

fn one<'a>(more: Events<'a>) -> Vec<(Kind, &'a [u64])> {
    [&ONE[..], more].concat()
}

#[test]
fn a_life_on_two_threads() {
    let first = one(&[
        (ProcsChange, &[2, 1]),
        (GoCreate, &[2, 1, 1]),
        (UserTaskBegin, &[1, 0, 2, 1]),
        (UserRegionBegin, &[1, 2, 0]),
        (GoSyscallBegin, &[1, 1]),
        (GoSyscallEnd, &[]),
        (UserRegionEnd, &[1, 2, 0]),
        (UserLog, &[1, 1, 2, 0]),
        (UserTaskEnd, &[1, 1]),
        (GCBegin, &[1, 0]),
        (STWBegin, &[1, 0]),
        (STWEnd, &[]),
        (GCEnd, &[2]),
        (GoBlock, &[1, 1]),
        (ProcStop, &[]),
    ]);
    let second: Events<'_> = &[
        (ProcStatus, &[1, 2]),
        (ProcStart, &[1, 1]),
        (GoStart, &[2, 1]),
        (GoUnblock, &[1, 1, 1]),
        (GoDestroy, &[]),
        (GoStart, &[1, 2]),
        (GoStop, &[1, 1]),
    ];
    assert_eq!(check(&[&[&first, second]]), Ok(24));
    // In a later generation their numbers begin anew, after their statuses.
    let later: Events<'_> = &[(GoStatus, &[1, NO_THREAD, 1]), (GoStart, &[1, 1])];
    assert_eq!(check(&[&[&first, second], &[&[], later]]), Ok(26));
}

#[test]
fn a_stolen_processor() {
    let first = one(&[(GoSyscallBegin, &[1, 0]), (GoSyscallEndBlocked, &[])]);
    let second: Events<'_> = &[(ProcSteal, &[0, 2, 100]), (ProcStart, &[0, 3]), (GoStart, &[1, 1])];
    assert_eq!(check(&[&[&first, second]]), Ok(7));
    let forgotten: Events<'_> = &[(ProcStatus, &[0, 4]), (ProcSteal, &[0, 1, 100])];
    let call = one(&[(GoSyscallBegin, &[1, 0])]);
    assert_eq!(check(&[&[&call], &[&[], forgotten]]), Ok(5));
    let wrong: Events<'_> = &[(ProcSteal, &[0, 2, 102])];
    breaks(&[&[&call, wrong]], "tried to steal proc 0");
}

#[test]
fn each_way_to_break_one() {
    let alone = |more: Events<'_>, words: &str| breaks(&[&[&one(more)]], words);
    alone(&[(GoStart, &[1, 1])], "no event can be next");
    alone(&[(GoCreate, &[2, 0, 0]), (GoStart, &[2, 1])], "runs on the thread already");
    alone(&[(GoCreate, &[1, 0, 0])], "made twice");
    alone(&[(GoBlock, &[1, 0]), (GoStart, &[1, 1])], "no event can be next");
    alone(&[(GoStop, &[1, 0]), (GoStart, &[1, 2])], "no event can be next");
    alone(&[(GoStop, &[1, 0]), (GoStop, &[1, 0])], "expected a goroutine");
    alone(&[(ProcStart, &[0, 1])], "no event can be next");
    alone(&[(ProcStop, &[]), (GoBlock, &[1, 0])], "expected a proc");
    alone(&[(GoUnblock, &[1, 1, 0])], "no event can be next");
    alone(&[(GoBlock, &[9, 0])], "invalid reason_string");
    alone(&[(GoBlock, &[1, 9])], "invalid stack");
    alone(&[(GoSyscallBegin, &[2, 0])], "can't make sequence");
    alone(&[(GoSyscallEnd, &[])], "not in a call");
    alone(&[(GoSyscallBegin, &[1, 0]), (GoSyscallEndBlocked, &[])], "no event can be next");
    alone(&[(GoSyscallBegin, &[1, 0]), (GoBlock, &[1, 0])], "not running");
    alone(&[(STWEnd, &[])], "not in-flight");
    alone(&[(STWBegin, &[1, 0]), (STWBegin, &[1, 0])], "begun already");
    alone(&[(GCEnd, &[1])], "undetermined");
    alone(&[(GCBegin, &[1, 0]), (GCEnd, &[3])], "no event can be next");
    let twice = [(UserTaskBegin, &[1, 0, 0, 0][..]), (UserTaskBegin, &[1, 0, 0, 0])];
    alone(&twice, "task ID conflict");
    alone(&[(UserRegionBegin, &[0, 1, 0]), (UserRegionEnd, &[0, 2, 0])], "misuse of region");
    alone(&[(ProcStatus, &[0, 2])], "inconsistent status for proc");
    alone(&[(GoStatus, &[1, NO_THREAD, 4])], "inconsistent status for goroutine");
    alone(&[(GoStatus, &[2, 100, 2])], "which has");
    alone(&[(ProcStatus, &[1, 1])], "proc 1 of a thread that has one");
    breaks(&[&[&ONE], &[&[(GoStatus, &[5, NO_THREAD, 1])]]], "new goroutine after the first");
    // The same goroutine on two processors.
    let second: Events<'_> = &[(ProcStatus, &[1, 2]), (ProcStart, &[1, 1]), (GoStart, &[2, 1])];
    let first = one(&[(GoCreate, &[2, 0, 0]), (GoStop, &[1, 0]), (GoStart, &[2, 1])]);
    breaks(&[&[&first, second]], "no event can be next");
}

#[test]
fn damaged_files() {
    let whole = file(&[&[&ONE]]);
    for cut in 0..HEADER.len() {
        assert!(Trace::read(&whole[..cut]).is_err());
    }
    // Whole batches are a trace once the frequency is there; anything between is not.
    let lengths = HEADER.len() + 1..whole.len();
    let read = lengths.filter(|cut| Trace::read(&whole[..*cut]).is_ok()).count();
    assert!(read <= 3, "{read}");
    let mut other = whole.clone();
    other[5] = b'9';
    assert!(Trace::read(&other).is_err());
    let skipped = [file(&[&[&ONE]]), file(&[&[], &[&ONE]])[HEADER.len()..].to_vec()].concat();
    let told = Trace::read(&skipped).expect_err("two frequencies in a generation");
    assert!(told.what.contains("multiple frequency"), "{told}");
    // The last generation that a number can tell has none after it.
    let of = |number| file_from(number, &[&[&ONE]])[HEADER.len()..].to_vec();
    let after_last = [HEADER.to_vec(), of(u64::MAX), of(1)].concat();
    let told = Trace::read(&after_last).expect_err("nothing comes after it");
    assert!(told.what.contains("out of order"), "{told}");
}

#[test]
fn samples_of_the_cpu_profiler() {
    let sample =
        |time, stack| CpuSample { time, thread: 100, processor: NO_PROCESSOR, goroutine: 1, stack };
    let with = |samples: &[CpuSample]| {
        let mut out = file(&[&[&ONE]]);
        sample_batches(&mut out, 1, 1000, samples);
        out
    };
    // More than fit into one batch.
    let many: Vec<_> = (0..3000).map(|n| sample(1000 + n, n % 2)).collect();
    let out = with(&many);
    let trace = Trace::read(&out).expect("it is right");
    assert_eq!(trace.generations[0].samples, many);
    assert_eq!(crate::verify(&out, |_, _| {}).map(|verified| verified.samples), Ok(3000));
    let told = crate::verify(&with(&[sample(1000, 9)]), |_, _| {}).expect_err("no such stack");
    assert!(told.to_string().contains("invalid stack ID 9"), "{told}");
    let mut cut = with(&[sample(1000, 1)]);
    let last = cut.len() - 1;
    cut[last] |= 0x80;
    let told = crate::verify(&cut, |_, _| {}).expect_err("a number that does not end");
    assert!(told.to_string().contains("a bad CPU sample"), "{told}");
}

#[path = "../../../../testprogs/fuzz.rs"]
mod fuzz;

/// Whatever the file says, reading it and checking its order ends, with an error or without.
#[test]
fn damaged_files_end_nothing() {
    let first = one(&[
        (GoCreate, &[2, 1, 1]),
        (UserRegionBegin, &[1, 2, 0]),
        (GoSyscallBegin, &[1, 1]),
        (GoSyscallEnd, &[]),
        (UserRegionEnd, &[1, 2, 0]),
        (STWBegin, &[1, 0]),
        (STWEnd, &[]),
        (GoBlock, &[1, 1]),
        (GoStart, &[2, 1]),
        (GoDestroy, &[]),
        (ProcStop, &[]),
    ]);
    let second: Events<'_> = &[(ProcStart, &[0, 1])];
    let mut sampled = file(&[&[&one(&[])]]);
    let at = CpuSample { time: 1001, thread: 100, processor: 0, goroutine: 1, stack: 1 };
    sample_batches(&mut sampled, 1, 1000, &[at; 3]);
    let good = [
        sampled,
        file(&[&[&first]]),
        file(&[&[&one(&[])], &[&one(&[])]]),
        file(&[&[&first, second]]),
    ];
    let good: Vec<&[u8]> = good.iter().map(Vec::as_slice).filter(|f| verify(f)).collect();
    assert!(good.len() >= 2, "most are right");
    fuzz::run("trace", 3_000, &good, verify);
}

fn verify(file: &[u8]) -> bool {
    crate::verify(file, |_, _| {}).is_ok()
}
