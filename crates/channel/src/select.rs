//! Select: one of several operations, whichever is ready first.
//!
//! Two steps, as in crossbeam-channel: a select is told which operation it is (a [`Token`]), and
//! then does it. So the message of a send is made only if it is sent.

mod case;
mod macros;
mod run;

pub(crate) use case::Endpoint;

use crate::core::Patience;
use crate::error::{ReadyTimeoutError, SelectTimeoutError, TryReadyError, TrySelectError};
use crate::error::{RecvError, SendError};
use crate::node::NodeRef;
use crate::receiver::Receiver;
use crate::sender::Sender;
use case::Case;
use run::Goal;
use std::fmt;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// What is kept for a select that was told its operation.
pub(crate) enum Token {
    /// The channel is closed: the operation fails.
    Closed,
    /// A message in the store, or room for one.
    Promised,
    /// One that waits, with the value's place.
    Partner(NodeRef),
    /// Another select, which waits and does not know the value's type.
    Meet(NodeRef),
    /// The message is in the case's own place.
    Delivered(NonNull<()>),
    /// A message from a clock.
    Instant(Instant),
}

impl Token {
    pub(crate) fn of_partner(node: NodeRef) -> Token {
        if node.slot().is_some() { Token::Partner(node) } else { Token::Meet(node) }
    }
}

/// A list of operations of which one is done. `select!` for lists that are made at run time.
///
/// ```
/// # use gosched_channel::{unbounded, Select};
/// let (s1, r1) = unbounded();
/// let (_s2, r2) = unbounded::<&str>();
/// s1.send("first").unwrap();
///
/// let mut select = Select::new();
/// let one = select.recv(&r1);
/// let two = select.recv(&r2);
/// let operation = select.select();
/// match operation.index() {
///     i if i == one => assert_eq!(operation.recv(&r1), Ok("first")),
///     i if i == two => assert!(operation.recv(&r2).is_ok()),
///     _ => unreachable!(),
/// }
/// ```
pub struct Select<'a> {
    cases: Vec<Case<'a>>,
    next_index: usize,
    is_biased: bool,
}

// SAFETY: between calls its cases are in no queue and hold no lock; they name ends of channels
// whose messages can't be reached through them.
unsafe impl Send for Select<'_> {}
// SAFETY: as above; everything that acts takes `&mut self`.
unsafe impl Sync for Select<'_> {}

impl<'a> Select<'a> {
    /// An empty list. Among operations that are ready one is chosen at random.
    ///
    /// ```
    /// let select = gosched_channel::Select::new();
    /// # drop(select);
    /// ```
    #[must_use]
    pub fn new() -> Select<'a> {
        Select { cases: Vec::with_capacity(4), next_index: 0, is_biased: false }
    }

    /// An empty list. Among operations that are ready the one that was added first is chosen.
    ///
    /// ```
    /// # use gosched_channel::{unbounded, Select};
    /// let (s, r) = unbounded();
    /// s.send(1).unwrap();
    /// let mut select = Select::new_biased();
    /// let first = select.recv(&r);
    /// select.recv(&r);
    /// assert_eq!(select.ready(), first);
    /// ```
    #[must_use]
    pub fn new_biased() -> Select<'a> {
        Select { is_biased: true, ..Select::new() }
    }

    /// Adds a send, and returns its index. See [`Select`] for an example.
    pub fn send<T>(&mut self, s: &'a Sender<T>) -> usize {
        self.add(|index| Case::new(s, index))
    }

    /// Adds a receive, and returns its index. See [`Select`] for an example.
    pub fn recv<T>(&mut self, r: &'a Receiver<T>) -> usize {
        self.add(|index| Case::new(r, index))
    }

    fn add(&mut self, case: impl FnOnce(usize) -> Case<'a>) -> usize {
        let index = self.next_index;
        let mut case = case(index);
        // Not its index, if some were removed.
        case.shuffled = self.cases.len();
        self.cases.push(case);
        self.next_index += 1;
        index
    }

    /// Removes an operation, for instance because its channel is closed. Others keep their index.
    ///
    /// ```
    /// # use gosched_channel::{never, unbounded, Select};
    /// let (_, closed) = unbounded::<u8>();
    /// let mut select = Select::new();
    /// let index = select.recv(&closed);
    /// assert_eq!(select.try_ready(), Ok(index));
    /// select.remove(index);
    /// assert!(select.try_ready().is_err());
    /// ```
    ///
    /// # Panics
    /// If there is no operation with this index.
    #[track_caller]
    pub fn remove(&mut self, index: usize) {
        assert!(index < self.next_index, "index out of bounds; {index} >= {}", self.next_index);
        let place = self.cases.iter().position(|case| case.index == index);
        self.cases.remove(place.expect("no operation with this index"));
        for (place, case) in self.cases.iter_mut().enumerate() {
            case.shuffled = place;
        }
    }

    /// Chooses an operation that is ready, which then has to be completed.
    ///
    /// ```
    /// # use gosched_channel::{unbounded, Select};
    /// let (_s, r) = unbounded::<u8>();
    /// let mut select = Select::new();
    /// select.recv(&r);
    /// assert!(select.try_select().is_err());
    /// ```
    ///
    /// # Errors
    /// If none is ready.
    pub fn try_select(&mut self) -> Result<SelectedOperation<'a>, TrySelectError> {
        run::select(&mut self.cases, Patience::None, self.is_biased).ok_or(TrySelectError)
    }

    /// Waits until an operation is ready, which then has to be completed. See [`Select`] for an
    /// example.
    ///
    /// # Panics
    /// If there is no operation.
    #[track_caller]
    pub fn select(&mut self) -> SelectedOperation<'a> {
        assert!(!self.cases.is_empty(), "no operations have been added to `Select`");
        run::select_endless(&mut self.cases, self.is_biased)
    }

    /// As [`select`](Select::select), waiting at most for `timeout`.
    ///
    /// ```
    /// # use gosched_channel::{unbounded, Select};
    /// # use std::time::Duration;
    /// let (_s, r) = unbounded::<u8>();
    /// let mut select = Select::new();
    /// select.recv(&r);
    /// assert!(select.select_timeout(Duration::from_millis(1)).is_err());
    /// ```
    ///
    /// # Errors
    /// If none is ready in time.
    pub fn select_timeout(
        &mut self,
        timeout: Duration,
    ) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        run::select(&mut self.cases, Patience::timeout(timeout), self.is_biased)
            .ok_or(SelectTimeoutError)
    }

    /// As [`select`](Select::select), waiting at most until `deadline`.
    ///
    /// # Errors
    /// If none is ready in time.
    pub fn select_deadline(
        &mut self,
        deadline: Instant,
    ) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        run::select(&mut self.cases, Patience::Until(deadline), self.is_biased)
            .ok_or(SelectTimeoutError)
    }

    /// The index of an operation that is ready. It is not done, and may not be ready any more when
    /// the caller tries it.
    ///
    /// ```
    /// # use gosched_channel::{unbounded, Select};
    /// let (s, _r) = unbounded::<u8>();
    /// let mut select = Select::new();
    /// let index = select.send(&s);
    /// assert_eq!(select.try_ready(), Ok(index));
    /// ```
    ///
    /// # Errors
    /// If none is ready.
    pub fn try_ready(&mut self) -> Result<usize, TryReadyError> {
        self.watch(Patience::None).ok_or(TryReadyError)
    }

    /// As [`try_ready`](Select::try_ready), waiting until there is one.
    ///
    /// # Panics
    /// If there is no operation.
    #[track_caller]
    pub fn ready(&mut self) -> usize {
        assert!(!self.cases.is_empty(), "no operations have been added to `Select`");
        loop {
            if let Some(index) = self.watch(Patience::Endless) {
                return index;
            }
        }
    }

    /// As [`ready`](Select::ready), waiting at most for `timeout`.
    ///
    /// # Errors
    /// If none is ready in time.
    pub fn ready_timeout(&mut self, timeout: Duration) -> Result<usize, ReadyTimeoutError> {
        self.watch(Patience::timeout(timeout)).ok_or(ReadyTimeoutError)
    }

    /// As [`ready`](Select::ready), waiting at most until `deadline`.
    ///
    /// # Errors
    /// If none is ready in time.
    pub fn ready_deadline(&mut self, deadline: Instant) -> Result<usize, ReadyTimeoutError> {
        self.watch(Patience::Until(deadline)).ok_or(ReadyTimeoutError)
    }

    fn watch(&mut self, patience: Patience) -> Option<usize> {
        let found = run::run(&mut self.cases, patience, self.is_biased, Goal::Watch);
        found.map(|(place, _)| self.cases[place].index)
    }
}

impl Clone for Select<'_> {
    fn clone(&self) -> Self {
        let cases = self.cases.iter().map(Case::copy).collect();
        Select { cases, next_index: self.next_index, is_biased: self.is_biased }
    }
}

impl Default for Select<'_> {
    fn default() -> Self {
        Select::new()
    }
}

impl fmt::Debug for Select<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Select { .. }")
    }
}

/// An operation that was chosen and has to be completed, by [`send`](SelectedOperation::send) or
/// [`recv`](SelectedOperation::recv). See [`Select`] for an example.
///
/// Dropping it panics, since then nobody would do what others count on; while the caller panics
/// already, what was kept for it goes to somebody else.
#[must_use = "a chosen operation has to be completed"]
pub struct SelectedOperation<'a> {
    /// Until it is completed. Also `None` in a macro's select that took its default.
    token: Option<Token>,
    index: usize,
    endpoint: Option<&'a dyn Endpoint>,
}

impl<'a> SelectedOperation<'a> {
    fn new(token: Token, index: usize, endpoint: &'a dyn Endpoint) -> SelectedOperation<'a> {
        SelectedOperation { token: Some(token), index, endpoint: Some(endpoint) }
    }

    fn none() -> SelectedOperation<'a> {
        SelectedOperation { token: None, index: usize::MAX, endpoint: None }
    }

    /// The operation's index.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Sends `msg`.
    ///
    /// # Errors
    /// If the channel is closed; the message is in the error.
    ///
    /// # Panics
    /// If the operation is not a send through `s`.
    #[track_caller]
    pub fn send<T>(mut self, s: &Sender<T>, msg: T) -> Result<(), SendError<T>> {
        assert!(self.is_of(s), "passed a sender that wasn't selected");
        match self.token.take() {
            Some(token) => s.chan().complete_send(token, msg),
            None => Err(SendError(msg)),
        }
    }

    /// Receives.
    ///
    /// # Errors
    /// If the channel is empty and closed.
    ///
    /// # Panics
    /// If the operation is not a receive through `r`.
    #[track_caller]
    pub fn recv<T>(mut self, r: &Receiver<T>) -> Result<T, RecvError> {
        assert!(self.is_of(r), "passed a receiver that wasn't selected");
        self.token.take().map_or(Err(RecvError), |token| r.complete(token))
    }

    fn is_of<E>(&self, end: &E) -> bool {
        self.endpoint.is_some_and(|endpoint| std::ptr::addr_eq(endpoint, end))
    }
}

impl fmt::Debug for SelectedOperation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("SelectedOperation { .. }")
    }
}

impl Drop for SelectedOperation<'_> {
    fn drop(&mut self) {
        let Some((token, endpoint)) = self.token.take().zip(self.endpoint) else { return };
        endpoint.abandon(token);
        assert!(
            std::thread::panicking(),
            "dropped `SelectedOperation` without completing the operation"
        );
    }
}

/// What `select!` calls. Not for users.
#[doc(hidden)]
pub mod internal {
    pub use super::case::Case;
    use super::{Patience, SelectedOperation, run};
    use crate::clock::wait_for_nobody;
    use crate::rt::WaitReason;
    use std::cell::UnsafeCell;
    use std::mem::MaybeUninit;
    use std::time::Duration;

    /// Where a partner puts the message of a receive.
    #[derive(Debug)]
    pub struct Place<T>(UnsafeCell<MaybeUninit<T>>);

    /// What a receive needs.
    pub mod recv {
        use super::{Case, Place};
        use crate::Receiver;
        use std::cell::UnsafeCell;
        use std::mem::MaybeUninit;

        #[inline]
        pub fn end<T>(r: &Receiver<T>) -> &Receiver<T> {
            r
        }

        #[inline]
        pub fn place<T>(_: &Receiver<T>) -> Place<T> {
            Place(UnsafeCell::new(MaybeUninit::uninit()))
        }

        #[inline]
        pub fn case<'a, T>(r: &'a Receiver<T>, index: usize, place: &'a Place<T>) -> Case<'a> {
            Case::with_place(r, index, &place.0)
        }
    }

    /// What a send needs.
    pub mod send {
        use super::Case;
        use crate::Sender;

        #[inline]
        pub fn end<T>(s: &Sender<T>) -> &Sender<T> {
            s
        }

        /// A message is made once it is known that it will be sent, so it has no place before.
        #[inline]
        pub fn place<T>(_: &Sender<T>) {}

        #[inline]
        pub fn case<'a, T>(s: &'a Sender<T>, index: usize, (): &'a ()) -> Case<'a> {
            Case::new(s, index)
        }
    }

    /// `select! {}`.
    pub fn select_nothing() -> ! {
        loop {
            wait_for_nobody(WaitReason::SelectNoCases, Patience::Endless);
        }
    }

    /// A select with nothing but `default(timeout)`.
    pub fn wait(timeout: Duration) {
        wait_for_nobody(WaitReason::SelectNoCases, Patience::timeout(timeout));
    }

    /// Without `default`.
    pub fn select<'a>(cases: &mut [Case<'a>], is_biased: bool) -> SelectedOperation<'a> {
        run::select_endless(cases, is_biased)
    }

    /// With `default`.
    pub fn try_select<'a>(cases: &mut [Case<'a>], is_biased: bool) -> SelectedOperation<'a> {
        let chosen = run::select(cases, Patience::None, is_biased);
        chosen.unwrap_or_else(SelectedOperation::none)
    }

    /// With `default(timeout)`.
    pub fn select_timeout<'a>(
        cases: &mut [Case<'a>],
        timeout: Duration,
        is_biased: bool,
    ) -> SelectedOperation<'a> {
        let chosen = run::select(cases, Patience::timeout(timeout), is_biased);
        chosen.unwrap_or_else(SelectedOperation::none)
    }
}
