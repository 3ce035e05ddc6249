//! Time-outs and deadlines, alone and against what they wait for.

use super::pairs::{Stream, for_each_stream, random};
use gosched::go;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

for_each_stream! {
    a_read_times_out_and_the_next_one_works,
    a_write_times_out,
    a_deadline_ends_a_read_that_waits_already,
    a_deadline_can_be_moved_away_from_a_read_that_waits,
    after_the_deadline_nothing_is_read,
    a_deadline_counts_for_all_that_wait,
    deadlines_against_data,
    timeouts_of_zero_are_refused,
    clones_take_the_timeouts_over,
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(2))
}

fn a_read_times_out_and_the_next_one_works<S: Stream>() {
    let (mut a, mut b) = S::pair();
    a.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    for _ in 0..3 {
        assert_eq!(a.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::TimedOut);
    }
    b.write_all(b"x").unwrap();
    // How long the kernel takes to deliver it is its own business.
    let read = loop {
        match a.read(&mut [0; 8]) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
            Ok(read) => break read,
        }
    };
    assert_eq!(read, 1);
    a.set_read_timeout(None).unwrap();
    let writer = go(move || {
        gosched::thread::sleep(Duration::from_millis(4));
        b.write_all(b"y").unwrap();
    });
    assert_eq!(a.read(&mut [0; 8]).unwrap(), 1);
    writer.join().unwrap();
}

fn a_write_times_out<S: Stream>() {
    let (mut a, _b) = S::pair();
    a.set_write_timeout(Some(Duration::from_millis(2))).unwrap();
    let error = loop {
        if let Err(error) = a.write(&[0; 65536]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

fn a_deadline_ends_a_read_that_waits_already<S: Stream>() {
    let (a, _b) = S::pair();
    let a = Arc::new(a);
    let reader = go({
        let a = a.clone();
        move || a.read_shared(&mut [0; 8]).unwrap_err().kind()
    });
    super::pairs::until_waiting(std::slice::from_ref(&reader));
    a.set_read_deadline(soon());
    assert_eq!(reader.join().unwrap(), ErrorKind::TimedOut);
    // One that is over already ends it at once.
    a.set_read_deadline(None);
    let reader = go({
        let a = a.clone();
        move || a.read_shared(&mut [0; 8]).unwrap_err().kind()
    });
    super::pairs::until_waiting(std::slice::from_ref(&reader));
    a.set_read_deadline(Some(Instant::now()));
    assert_eq!(reader.join().unwrap(), ErrorKind::TimedOut);
}

fn a_deadline_can_be_moved_away_from_a_read_that_waits<S: Stream>() {
    let (a, mut b) = S::pair();
    let a = Arc::new(a);
    let mut time = Duration::from_millis(40);
    loop {
        let deadline = Instant::now() + time;
        a.set_read_deadline(Some(deadline));
        let reader = go({
            let a = a.clone();
            move || a.read_shared(&mut [0; 8])
        });
        gosched::thread::yield_now();
        a.set_read_deadline(None);
        let was_moved_in_time = Instant::now() < deadline;
        // Well after the first deadline.
        gosched::thread::sleep(time + Duration::from_millis(10));
        b.write_all(b"x").unwrap();
        match reader.join().unwrap() {
            Ok(n) => return assert_eq!(n, 1),
            // This thread had no CPU for so long: once more, with more time.
            Err(error) if !was_moved_in_time => assert_eq!(error.kind(), ErrorKind::TimedOut),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(a.read_shared(&mut [0; 8]).unwrap(), 1);
        time *= 2;
    }
}

/// As in Go: not even what is there.
fn after_the_deadline_nothing_is_read<S: Stream>() {
    let (mut a, mut b) = S::pair();
    b.write_all(b"x").unwrap();
    a.set_read_deadline(Some(Instant::now()));
    assert_eq!(a.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::TimedOut);
    a.write_all(b"the other direction works").unwrap();
    a.set_write_deadline(Some(Instant::now()));
    assert_eq!(a.write(b"x").unwrap_err().kind(), ErrorKind::TimedOut);
    a.set_read_deadline(None);
    assert_eq!(a.read(&mut [0; 8]).unwrap(), 1);
}

/// Also for those that wait for their turn.
fn a_deadline_counts_for_all_that_wait<S: Stream>() {
    let (a, _b) = S::pair();
    let a = Arc::new(a);
    let readers = [(); 5].map(|()| {
        let a = a.clone();
        go(move || a.read_shared(&mut [0; 8]).unwrap_err().kind())
    });
    super::pairs::until_waiting(&readers);
    a.set_read_deadline(soon());
    for reader in readers {
        assert_eq!(reader.join().unwrap(), ErrorKind::TimedOut);
    }
}

/// A byte that comes just when the time is over is read now or by the next read, never lost.
fn deadlines_against_data<S: Stream>() {
    let (mut a, mut b) = S::pair();
    const ROUNDS_MIN: u64 = 2000;
    const EACH_MIN: u64 = 50;
    let (mut in_time, mut late) = (0, 0);
    let is_over =
        |in_time: u64, late: u64| in_time + late >= ROUNDS_MIN && in_time.min(late) > EACH_MIN;
    for round in 0_u64.. {
        if is_over(in_time, late) {
            break;
        }
        let writer = go(move || {
            gosched::thread::sleep(Duration::from_micros(random(100)));
            b.write_all(&[round as u8]).unwrap();
            b
        });
        a.set_read_deadline(Some(Instant::now() + Duration::from_micros(random(200))));
        let mut byte = [0];
        match a.read(&mut byte) {
            Ok(n) => {
                assert_eq!(n, 1);
                in_time += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                late += 1;
                a.set_read_deadline(None);
                assert_eq!(a.read(&mut byte).unwrap(), 1);
            }
        }
        assert_eq!(byte[0], round as u8);
        b = writer.join().unwrap();
    }
}

fn timeouts_of_zero_are_refused<S: Stream>() {
    let (a, _b) = S::pair();
    let zero = Some(Duration::ZERO);
    assert_eq!(a.set_read_timeout(zero).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(a.set_write_timeout(zero).unwrap_err().kind(), ErrorKind::InvalidInput);
}

fn clones_take_the_timeouts_over<S: Stream>() {
    let (a, _b) = S::pair();
    a.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    let mut clone = a.try_clone().unwrap();
    assert_eq!(clone.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::TimedOut);
}
