//! How channels are made.

use crate::chan::Chan;
use crate::clock::Clock;
use crate::receiver::{Flavor, Receiver};
use crate::sender::Sender;
use std::convert::identity;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A channel that holds any number of messages; sending never waits.
///
/// ```
/// let (s, r) = gosched_channel::unbounded();
/// (0..100).for_each(|n| s.send(n).unwrap());
/// assert_eq!(r.len(), 100);
/// ```
#[must_use]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    ends(Chan::unbounded())
}

/// A channel that holds `cap` messages; sending waits while it is full.
///
/// Go's `make(chan T, cap)`. With a `cap` of 0 a message goes from the sender to the receiver when
/// both are there.
///
/// ```
/// let (s, r) = gosched_channel::bounded(0);
/// std::thread::spawn(move || s.send("meet me").unwrap());
/// assert_eq!(r.recv(), Ok("meet me"));
/// ```
///
/// # Panics
/// If there is no memory for `cap` messages.
#[must_use]
pub fn bounded<T>(cap: usize) -> (Sender<T>, Receiver<T>) {
    ends(Chan::bounded(cap))
}

fn ends<T>(chan: Chan<T>) -> (Sender<T>, Receiver<T>) {
    let chan = Arc::new(chan);
    (Sender::new(Arc::clone(&chan)), Receiver::new(Flavor::Chan(chan)))
}

/// A receiver of one message: the time, once `duration` has passed. Go's `time.After`.
///
/// The channel never closes: another receive waits for ever.
///
/// ```
/// # use std::time::{Duration, Instant};
/// let start = Instant::now();
/// let r = gosched_channel::after(Duration::from_millis(2));
/// assert!(r.recv().unwrap() >= start + Duration::from_millis(2));
/// assert!(r.try_recv().is_err());
/// ```
#[must_use]
pub fn after(duration: Duration) -> Receiver<Instant> {
    match Instant::now().checked_add(duration) {
        Some(when) => at(when),
        None => never(),
    }
}

/// A receiver of one message: the time `when`, once it has come.
///
/// ```
/// # use std::time::{Duration, Instant};
/// let when = Instant::now() + Duration::from_millis(2);
/// assert_eq!(gosched_channel::at(when).recv(), Ok(when));
/// ```
#[must_use]
pub fn at(when: Instant) -> Receiver<Instant> {
    Receiver::new(Flavor::Clock(Arc::new(Clock::at(when)), identity))
}

/// A receiver that is never ready. Go's nil channel.
///
/// ```
/// # use gosched_channel::{never, TryRecvError};
/// let r = never::<u8>();
/// assert_eq!(r.try_recv(), Err(TryRecvError::Empty));
/// ```
#[must_use]
pub const fn never<T>() -> Receiver<T> {
    Receiver::new(Flavor::Never)
}

/// A receiver of the time every `duration`. Go's `time.Tick`.
///
/// A message that is not received delays those after it: a slow receiver misses some, and never
/// finds more than one.
///
/// ```
/// # use std::time::{Duration, Instant};
/// let start = Instant::now();
/// let ticks = gosched_channel::tick(Duration::from_millis(2));
/// ticks.recv().unwrap();
/// ticks.recv().unwrap();
/// assert!(start.elapsed() >= Duration::from_millis(4));
/// ```
#[must_use]
pub fn tick(duration: Duration) -> Receiver<Instant> {
    match Instant::now().checked_add(duration) {
        Some(first) => {
            Receiver::new(Flavor::Clock(Arc::new(Clock::tick(first, duration)), identity))
        }
        None => never(),
    }
}
