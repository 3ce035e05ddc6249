//! The examples that count the goroutines of the process show what they say. One test, since each
//! would count the others' too.

#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../examples/leak.rs"]
mod leak;
#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../examples/worker_pool.rs"]
mod worker_pool;

use gosched::sync::{Arc, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use worker_pool::{Job, Log, Patience, SubmitError, WorkerPool};

/// Lines that are kept.
fn kept() -> (Log, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log: Log = Arc::new({
        let lines = lines.clone();
        move |line| lines.lock().unwrap().push(line)
    });
    (log, lines)
}

const HOUR: Duration = Duration::from_secs(3600);

#[gosched::test(timeout = "300s")]
fn goroutines_are_left_where_the_demo_says_so() {
    // The main goroutine of the test.
    let base = || gosched::runtime::num_goroutine();
    let shown = leak::demo();
    assert_eq!(shown.each_ref().map(|shown| shown.left), [9, 0, 0, 0]);
    assert_eq!(shown[0].waiting.len(), 9, "{}", shown[0]);
    assert!(shown[0].to_string().contains("such as goroutine "), "{}", shown[0]);

    let before = base();
    let (log, lines) = kept();
    assert_eq!(worker_pool::demo(&log, 1, Patience { submit: HOUR, shutdown: HOUR }), 20);
    let lines = lines.lock().unwrap();
    let is_there = |text: &str| lines.iter().any(|line| line.starts_with(text));
    for text in [
        "=== Scheduler Behavior Demo ===",
        "GOMAXPROCS: ",
        "NumCPU: ",
        "Initial goroutines: ",
        "Starting pool: workers=",
        "Result: job=",
        "Shutting down worker pool...",
        "All workers finished",
        "Total results collected: 20",
        "Final goroutines: ",
    ] {
        assert!(is_there(text), "{text:?} is missing in {lines:#?}");
    }
    assert_eq!(lines.iter().filter(|line| line.starts_with("Result: ")).count(), 5);
    assert_eq!(lines.last(), Some(&format!("Final goroutines: {before}")));
    a_pool_that_is_shut_down_says_so();
    a_pool_that_takes_too_long_is_cancelled();
}

fn job(work_units: u64) -> Job {
    Job { id: 0, cpu_bound: false, work_units }
}

fn a_pool_that_is_shut_down_says_so() {
    let (log, _) = kept();
    let pool = Arc::new(WorkerPool::new(2, HOUR, log));
    pool.start();
    // Shut down while somebody submits: an error, not a panic.
    let submitter = gosched::go({
        let pool = pool.clone();
        move || loop {
            if let Err(error) = pool.submit(job(0)) {
                return error;
            }
        }
    });
    let (results, read) = (pool.results(), Arc::new(AtomicUsize::new(0)));
    let reader = gosched::go({
        let read = read.clone();
        move || results.iter().for_each(|_| _ = read.fetch_add(1, SeqCst))
    });
    while read.load(SeqCst) == 0 {
        gosched::thread::yield_now();
    }
    pool.shutdown(HOUR);
    assert_eq!(submitter.join().unwrap(), SubmitError::Closed);
    assert_eq!(pool.submit(job(1)), Err(SubmitError::Closed));
    // The results end as well.
    reader.join().unwrap();
}

fn a_pool_that_takes_too_long_is_cancelled() {
    let (log, lines) = kept();
    let pool = WorkerPool::new(2, HOUR, log);
    pool.start();
    pool.submit(job(HOUR.as_millis() as u64)).unwrap();
    pool.shutdown(Duration::from_millis(1));
    assert_eq!(pool.results().iter().count(), 0);
    let lines = lines.lock().unwrap();
    assert!(lines.iter().any(|line| line == "Shutdown timeout, cancelling..."), "{lines:?}");
}
