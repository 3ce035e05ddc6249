use super::{Job, Log, Monitor, Patience, SubmitError, WorkerPool};
use gosched::sync::{Arc, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const PATIENT: Patience = Patience { submit: HOUR, shutdown: HOUR, monitor: HOUR };

/// Lines that are kept.
fn kept() -> (Log, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log: Log = Arc::new({
        let lines = lines.clone();
        move |line| lines.lock().unwrap().push(line)
    });
    (log, lines)
}

fn job(work_units: u64) -> Job {
    Job { id: 0, cpu_bound: false, work_units }
}

/// Shut down while somebody submits: an error, not a panic.
#[gosched::test(timeout = "300s")]
fn a_pool_that_is_shut_down_says_so() {
    let pool = Arc::new(WorkerPool::new(2, PATIENT, kept().0));
    pool.start();
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
    assert!(pool.shutdown(Monitor::Ends));
    assert_eq!(submitter.join().unwrap(), SubmitError::Closed);
    assert_eq!(pool.submit(job(1)), Err(SubmitError::Closed));
    // The results end as well.
    reader.join().unwrap();
}

#[gosched::test(timeout = "300s")]
fn a_pool_that_takes_too_long_is_cancelled() {
    let (log, lines) = kept();
    let late = Patience { shutdown: Duration::from_millis(1), ..PATIENT };
    let pool = WorkerPool::new(2, late, log);
    pool.start();
    pool.submit(job(HOUR.as_millis() as u64)).unwrap();
    assert!(!pool.shutdown(Monitor::Ends));
    assert_eq!(pool.results().iter().count(), 0);
    let lines = lines.lock().unwrap();
    assert!(lines.iter().any(|line| line == "Shutdown timeout, cancelling..."), "{lines:?}");
}

/// Nobody takes jobs from a pool that has not started.
#[gosched::test(timeout = "300s")]
fn a_queue_that_stays_full_is_an_error() {
    let hasty = Patience { submit: Duration::from_millis(1), ..PATIENT };
    let pool = WorkerPool::new(1, hasty, kept().0);
    assert_eq!(pool.submit(job(0)), Ok(()));
    assert_eq!(pool.submit(job(0)), Ok(()));
    assert_eq!(pool.submit(job(0)), Err(SubmitError::Full));
}
