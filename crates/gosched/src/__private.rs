//! What the attribute macros call, and what tests look at. Not for users.

#[cfg(feature = "history")]
pub use gosched_sched::check_history;
pub use gosched_sched::{is_in_runtime, put_to_rest, resting};
use std::panic::Location;
use std::process::Termination;
use std::time::Duration;

/// Runs `f` as the main goroutine and ends the process.
#[track_caller]
pub fn main<T: Termination + 'static>(f: fn() -> T) -> ! {
    gosched_sched::run_main(f, Location::caller())
}

/// Runs `f`, a test, in a goroutine; after `timeout` prints a dump and fails.
pub fn test<T: Termination + Send + 'static>(
    name: &'static str,
    timeout: Option<Duration>,
    f: fn() -> T,
) -> T {
    let Some(timeout) = timeout else { return gosched_sched::run(f) };
    let (tell, told) = std::sync::mpsc::channel();
    let runner = std::thread::spawn(move || {
        let result = std::panic::catch_unwind(|| gosched_sched::run(f));
        let _ = tell.send(());
        result
    });
    if told.recv_timeout(timeout).is_err() {
        let mut text = String::new();
        let _ = gosched_sched::dump(&mut text);
        panic!("test {name} did not end within {timeout:?}\n\n{text}");
    }
    match runner.join() {
        Ok(Ok(value)) => value,
        Ok(Err(payload)) | Err(payload) => std::panic::resume_unwind(payload),
    }
}
