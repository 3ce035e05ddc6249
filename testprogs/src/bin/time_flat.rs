//! What a million waits with far time-outs leave behind: resident memory before and after.
//!
//! `time_flat WHAT N`: does it N / 10 times to warm up, then N times, and prints both figures.

use gosched::channel::{Receiver, after, bounded};
use gosched::time::{Timer, after_func};
use gosched::{go, run, select};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().expect("what to do");
    let n: u64 = arguments.next().and_then(|n| n.parse().ok()).expect("how often");
    let act: fn(u64) = match what.as_str() {
        "select" => |n| {
            selects(n, |jobs| {
                select! {
                    recv(jobs) -> job => job.is_ok(),
                    recv(after(HOUR)) -> _ => unreachable!("an hour has passed"),
                }
            })
        },
        "select-timer" => |n| {
            let timer = Timer::new(HOUR);
            selects(n, move |jobs| {
                timer.reset(HOUR);
                select! {
                    recv(jobs) -> job => job.is_ok(),
                    recv(timer.c()) -> _ => unreachable!("an hour has passed"),
                }
            });
        },
        "select-default" => |n| {
            selects(n, |jobs| {
                select! {
                    recv(jobs) -> job => job.is_ok(),
                    default(HOUR) => unreachable!("an hour has passed"),
                }
            })
        },
        "after-func" => after_funcs,
        other => panic!("what is {other}?"),
    };
    act_and_print(act, n);
}

fn act_and_print(act: fn(u64), n: u64) {
    for n in [n / 10, n] {
        run(move || act(n));
        println!("{}", resident_bytes());
    }
}

/// A million receives, each of which waits.
fn selects(n: u64, mut select: impl FnMut(&Receiver<u64>) -> bool) {
    let (job, jobs) = bounded(0);
    let sender = go(move || (0..n).for_each(|i| job.send(i).expect("somebody receives")));
    for _ in 0..n {
        assert!(select(&jobs));
    }
    sender.join().expect("it does not panic");
}

fn after_funcs(n: u64) {
    for _ in 0..n {
        assert!(after_func(HOUR, || unreachable!("an hour has passed")).stop());
    }
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 = text.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a number");
    pages * 4096
}
