//! `stop_the_world`: how long the world stands still beside many goroutines that talk.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::stats::Sorted;
use crate::tasks::{join_all, spawn};
use crate::work::spin;
use gosched::channel::bounded;
use gosched::runtime::pause_world;
use gosched::thread::sleep;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// `tasks` goroutines in pairs that throw a ball to and fro, `hogs` that compute without a pause, and
/// `n` stops, `gap` microseconds apart, from when every pair plays.
pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(1_000)?;
    let tasks = args.get("tasks", 10_000_u64)?;
    let hogs = args.get("hogs", 0_u64)?;
    let gap = Duration::from_micros(args.get("gap", 500)?);
    let over = Arc::new(AtomicBool::new(false));
    let playing = Arc::new(AtomicU64::new(0));
    let pairs: Vec<_> = (0..tasks / 2).flat_map(|_| pair(over.clone(), playing.clone())).collect();
    let computing: Vec<_> = (0..hogs)
        .map(|_| {
            let over = over.clone();
            // ORDERING: Relaxed; there is nothing else to see.
            spawn(move || {
                while !over.load(Relaxed) {
                    spin(1_000)
                }
            })
        })
        .collect();
    // ORDERING: Relaxed; as above.
    while playing.load(Relaxed) < tasks / 2 {
        sleep(gap);
    }
    let start = Instant::now();
    let stops = (0..n).map(|_| {
        sleep(gap);
        pause_world().as_nanos() as u64
    });
    let stops = Sorted::new(stops.collect());
    let took = start.elapsed();
    // ORDERING: Relaxed; as above.
    over.store(true, Relaxed);
    let trips: u64 = join_all(pairs).into_iter().sum();
    join_all(computing);
    assert!(trips > 0 || tasks < 2, "the balls flew meanwhile");
    Ok(Report::new(args, n)
        .secs(took)
        .set("stop_p50_us", stops.at(0.50) / 1e3)
        .set("stop_p99_us", stops.at(0.99) / 1e3)
        .set("stop_max_us", stops.at(1.0) / 1e3)
        .set("tasks", tasks)
        .set("hogs", hogs)
        .set("trips", trips))
}

/// Two tasks with a ball; each returns how often it threw it.
fn pair(over: Arc<AtomicBool>, playing: Arc<AtomicU64>) -> [gosched::thread::JoinHandle<u64>; 2] {
    let (ping, pinged) = bounded(1);
    let (pong, ponged) = bounded(1);
    let first = spawn(move || {
        let mut throws = 0;
        // ORDERING: Relaxed; there is nothing else to see.
        while !over.load(Relaxed) {
            ping.send(()).expect("the other one catches it");
            ponged.recv().expect("and throws it back");
            throws += 1;
            if throws == 1 {
                // ORDERING: Relaxed; a count.
                playing.fetch_add(1, Relaxed);
            }
        }
        throws
    });
    let second = spawn(move || {
        let mut throws = 0;
        while pinged.recv().is_ok() && pong.send(()).is_ok() {
            throws += 1;
        }
        throws
    });
    [first, second]
}
