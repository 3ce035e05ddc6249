//! Starting tasks and waiting for them.

use crate::verify;
use gosched::thread::JoinHandle;

/// Starts a goroutine. Every task of a bench starts here (I2 of the crate).
pub(crate) fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    if verify::is_on() {
        return gosched::go(verify::spawned(f));
    }
    gosched::go(f)
}

/// Waits for one task.
pub(crate) fn join<T>(task: JoinHandle<T>) -> T {
    task.join().expect("a task panicked")
}

/// Waits for all tasks that are left, and returns their results.
pub(crate) fn join_all<T>(tasks: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    tasks.into_iter().map(join).collect()
}
