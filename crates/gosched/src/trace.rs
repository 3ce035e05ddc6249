//! Execution traces: what every goroutine and processor did, as Go's tools show it. Go's package
//! `runtime/trace`.
//!
//! A trace is a file that `go tool trace FILE` opens (any Go since 1.23): the goroutines on each
//! processor over time, why they waited and who woke them, calls that blocked, stops of the world, and
//! profiles of these. `gosched trace check|summary|chrome FILE` needs no Go.
//!
//! Recording costs some tens of nanoseconds an event and, once a second, some work on a thread of its own. When
//! it is off it costs nothing that can be measured.
//!
//! What differs from Go's traces: stacks have two frames, the runtime's word for what a goroutine does
//! and the goroutine's function at the line that spawned it. Calls that block without saying so appear
//! as system calls from the moment in which the monitor took the processor away. A goroutine that a
//! plain thread spawns appears when it first runs.
//!
//! ```
//! use gosched::trace;
//! use std::{env, fs};
//!
//! let path = env::temp_dir().join(format!("doc-{}.trace", std::process::id()));
//! trace::start(fs::File::create(&path).unwrap()).unwrap();
//! gosched::run(|| {
//!     let (sender, receiver) = gosched::channel::bounded(0);
//!     gosched::go(move || sender.send(6 * 7).unwrap());
//!     assert_eq!(receiver.recv(), Ok(42));
//! });
//! trace::stop().unwrap();
//! let file = fs::read(&path).unwrap();
//! assert!(file.starts_with(b"go 1.23 trace"));
//! # fs::remove_file(&path).unwrap();
//! ```
//!
//! While a CPU profile is made its samples are in the trace as well.
//!
//! # Tasks, regions, logs
//!
//! A [`Task`] is something that several goroutines work on, such as a request; a [`Region`] is a part of
//! what one goroutine does; [`log()`] notes a message. The viewer finds goroutines by them. All of them do
//! nothing on a plain thread or without a trace.
//!
//! ```
//! use gosched::trace::{self, Region, Task};
//!
//! gosched::run(|| {
//!     let request = Task::new("request");
//!     request.log("path", "/mixed");
//!     {
//!         let _parse = request.region("parse");
//!         trace::log("bytes", "512");
//!     }
//!     let _rest = Region::new("rest");
//! });
//! ```

use std::io::{self, Write};

/// Records the last seconds for ever, and writes them when something has happened.
///
/// Go's `trace.FlightRecorder`. It keeps whole generations of about a second. One at a time, also
/// while a trace is recorded. Dropping it stops it.
///
/// ```
/// use gosched::trace::FlightRecorder;
/// use std::time::Duration;
///
/// let recorder = FlightRecorder::new().min_age(Duration::from_secs(5)).max_bytes(1 << 20);
/// recorder.start().unwrap();
/// gosched::run(|| gosched::thread::yield_now());
/// let mut file = Vec::new();
/// recorder.write_to(&mut file).unwrap();
/// assert!(file.starts_with(b"go 1.23 trace"));
/// recorder.stop();
/// assert!(!recorder.is_enabled());
/// ```
pub use gosched_sched::FlightRecorder;
/// A part of what a goroutine does, until it is dropped. Go's `trace.StartRegion`.
///
/// Regions of a goroutine nest: the one that was begun last ends first.
///
/// ```
/// let _all = gosched::trace::Region::new("all");
/// let _part = gosched::trace::Region::new("part");
/// ```
pub use gosched_sched::Region;
pub use gosched_sched::TraceError;
/// Something that several goroutines work on, until it is dropped. Go's `trace.Task`, which goes along
/// in a context; this one is passed on as any value.
///
/// ```
/// use gosched::trace::Task;
/// use std::sync::Arc;
///
/// let request = Arc::new(Task::new("request"));
/// let part = request.clone();
/// gosched::go(move || {
///     let _region = part.region("part");
/// })
/// .join()
/// .unwrap();
/// let _step = request.child("step");
/// ```
pub use gosched_sched::TraceTask as Task;

/// Begins to record a trace into `writer`, from any goroutine or plain thread.
///
/// Go's `trace.Start`. The world is stopped for a moment. `writer` is used by a thread of its own, about
/// once a second, in large pieces; it is dropped by [`stop`]. Starts the runtime if need be.
///
/// ```
/// gosched::trace::start(std::io::sink()).unwrap();
/// assert!(gosched::trace::is_enabled());
/// assert!(gosched::trace::start(std::io::sink()).is_err());
/// gosched::trace::stop().unwrap();
/// ```
///
/// # Errors
/// If a trace is on, or the system refuses a thread. A flight recorder may be on.
///
/// # Panics
/// If the runtime has to be started and can't create its threads.
pub fn start(writer: impl Write + Send + 'static) -> Result<(), TraceError> {
    gosched_sched::start_trace(writer)
}

/// Ends the trace and returns when all of it was written. Go's `trace.Stop`. Nothing if none is on.
///
/// What happens to a process that ends without it: the last second or so is missing.
///
/// ```
/// gosched::trace::stop().unwrap(); // there was none
/// ```
///
/// # Errors
/// What the writer returned first; nothing was recorded after that.
/// [`OutOfMemory`](io::ErrorKind::OutOfMemory): the writer was so slow that 256 MiB were waiting, and
/// the trace ends there.
pub fn stop() -> io::Result<()> {
    gosched_sched::stop_trace()
}

/// Whether a trace is being recorded. Go's `trace.IsEnabled`.
///
/// ```
/// assert!(!gosched::trace::is_enabled());
/// ```
#[must_use]
pub fn is_enabled() -> bool {
    gosched_sched::is_traced()
}

/// Notes `message` at this moment, by the calling goroutine. Go's `trace.Log`.
///
/// ```
/// gosched::trace::log("state", "warm");
/// ```
#[track_caller]
pub fn log(category: &str, message: &str) {
    gosched_sched::trace_log(category, message);
}
