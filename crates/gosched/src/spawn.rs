//! `go`.

use crate::thread::{Builder, JoinHandle};

/// Runs `f` in a new goroutine.
///
/// Go's `go` statement with the bounds and the handle of [`std::thread::spawn`]. From a plain
/// thread too; the first use starts the runtime. The goroutine has thread-locals of its own, so
/// `f` may do whatever a thread may do, and may be moved between machines at any wait.
///
/// Dropping the handle detaches the goroutine. When the main goroutine returns, the process ends
/// without waiting for others, as in Go (and as with std's threads).
///
/// ```
/// let answer = gosched::go(|| 6 * 7);
/// assert_eq!(answer.join().unwrap(), 42);
/// ```
///
/// What is not `Send` stays where it is, and what is borrowed needs a
/// [`scope`](crate::thread::scope()):
///
/// ```compile_fail,E0277
/// let local = std::rc::Rc::new(1);
/// gosched::go(move || *local);
/// ```
///
/// ```compile_fail,E0277
/// let handle = gosched::go(|| std::rc::Rc::new(1));
/// ```
///
/// ```compile_fail,E0373
/// let borrowed = 1;
/// gosched::go(|| borrowed + 1);
/// ```
///
/// # Panics
/// If there is no memory; [`Builder::spawn`] returns an error instead.
#[inline]
#[track_caller]
pub fn go<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match Builder::new().spawn(f) {
        Ok(handle) => handle,
        Err(error) => panic!("go: {error}"),
    }
}
