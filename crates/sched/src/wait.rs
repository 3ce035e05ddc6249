//! Waiting, for goroutines and plain threads alike.
//!
//! Everything that waits registers a [`Waiter`] somewhere and blocks; whoever finds the waiter
//! there wakes it, once. A goroutine gives its machine to another one meanwhile; a plain thread
//! sleeps on a futex.

use crate::current::current;
use crate::goroutine::GRef;
use crate::machine::Inside;
use crate::reason::WaitReason;
use crate::{deadlock, forked, park as parking, timer};
use gosched_base::Parker;
use gosched_protocol::PermitTaken;
use gosched_runq::Token;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One that waits: a goroutine or a plain thread, in one word.
///
/// The address of a goroutine's descriptor, or of a thread's parker with the lowest bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter(NonZeroUsize);

const PLAIN: usize = 1;

impl Waiter {
    pub(crate) fn of_goroutine(g: GRef) -> Waiter {
        Waiter(g.into_ptr().addr())
    }

    fn of_parker(parker: &Parker) -> Waiter {
        Waiter(NonNull::from(parker).addr() | PLAIN)
    }

    /// The waiter as a word for a wait structure.
    #[inline]
    #[must_use]
    pub fn into_word(self) -> NonZeroUsize {
        self.0
    }

    /// The waiter that `word` stands for.
    ///
    /// # Safety
    /// * `word` came from [`into_word`](Waiter::into_word).
    #[inline]
    #[must_use]
    pub unsafe fn from_word(word: NonZeroUsize) -> Waiter {
        Waiter(word)
    }

    /// Makes the waiter runnable. Whoever took it out of its wait structure calls this, once.
    #[inline]
    pub fn wake(self) {
        if self.0.get() & PLAIN == 0 {
            parking::ready(self.goroutine());
        } else {
            let parker = (self.0.get() & !PLAIN) as *const Parker;
            // SAFETY: the thread waits on this parker until it is woken, and waking uses only its
            // address after the permit is there.
            unsafe { (*parker).wake() };
        }
    }

    /// As [`wake`](Waiter::wake), for code that is inside the runtime already.
    pub(crate) fn wake_inside(self, inside: &Inside) {
        if self.0.get() & PLAIN == 0 {
            parking::ready_inside(inside, self.goroutine());
        } else {
            self.wake();
        }
    }

    /// As [`wake_inside`](Waiter::wake_inside), but the waiter gets its turn, not the next one.
    pub(crate) fn wake_in_turn(self, inside: &Inside) {
        if self.0.get() & PLAIN == 0 {
            parking::ready_in_turn(inside, self.goroutine());
        } else {
            self.wake();
        }
    }

    /// The goroutine; `None` if a plain thread waits.
    pub(crate) fn as_goroutine(self) -> Option<GRef> {
        (self.0.get() & PLAIN == 0).then(|| self.goroutine())
    }

    fn goroutine(self) -> GRef {
        let g = self.0.get() as *mut crate::goroutine::Goroutine;
        // SAFETY: untagged waiters are descriptors, which are never freed.
        unsafe { GRef::from_address(g) }
    }
}

/// Blocks the caller, a goroutine or a plain thread, until it is woken.
///
/// `commit` registers the waiter where its waker will find it, and returns true; or false if there
/// is nothing to wait for any more. It runs once the caller is suspended: for a goroutine inside
/// the runtime on another's stack, so it must not allocate, panic, block or use thread-locals.
#[inline]
pub fn block<F: FnOnce(Waiter) -> bool>(reason: WaitReason, commit: F) {
    match Inside::enter() {
        Some(inside) => {
            parking::park(inside, reason, move |g| commit(Waiter::of_goroutine(g))).leave();
        }
        None => block_thread(commit),
    }
}

#[cold]
pub(crate) fn block_thread<F: FnOnce(Waiter) -> bool>(commit: F) {
    forked::check();
    let parker = Parker::new();
    if commit(Waiter::of_parker(&parker)) {
        sleep_on(&parker);
    }
}

/// A plain thread's wait without an end. When it has lasted for long, and no goroutine could end it,
/// there is a warning.
fn sleep_on(parker: &Parker) {
    if !parker.sleep_for(deadlock::WARNING) {
        deadlock::plain_thread_waits();
        parker.sleep();
    }
}

/// As [`block`], at most until `deadline`.
///
/// When the time is over `expire` is called, at most once: it decides the race with the waker by
/// trying to take the waiter back, and returns true if it succeeded (the caller then goes on) or
/// false if a waker has the waiter already (its wake then ends the wait). It runs under a timer
/// lock, perhaps on another thread: like `commit` it must not allocate, panic, block or use
/// thread-locals, and it must not wait for a lock that is held around `block_until`.
pub fn block_until<F, E>(reason: WaitReason, deadline: Instant, commit: F, expire: E)
where
    F: FnOnce(Waiter) -> bool,
    E: Fn() -> bool + Sync,
{
    let left = deadline.saturating_duration_since(Instant::now());
    if current().is_some() {
        let commit = |g| commit(Waiter::of_goroutine(g));
        return timer::wait_with_deadline(reason, timer::after(left), commit, expire);
    }
    forked::check();
    let parker = Parker::new();
    if commit(Waiter::of_parker(&parker)) && !parker.sleep_for(left) && !expire() {
        // A waker has the waiter: its wake is under way, and it uses the parker.
        parker.sleep();
    }
}

/// The token of a plain thread's [`park`].
#[derive(Debug, Default)]
pub(crate) struct PlainPermit {
    parker: Parker,
}

impl PlainPermit {
    pub(crate) fn unpark(&self) {
        self.parker.wake();
    }
}

thread_local! {
    /// Touched on plain threads only; goroutines have their permit in the descriptor.
    static PLAIN_PERMIT: RefCell<Option<Arc<PlainPermit>>> = const { RefCell::new(None) };
}

pub(crate) fn plain_permit() -> Arc<PlainPermit> {
    PLAIN_PERMIT.with(|p| p.borrow_mut().get_or_insert_with(Arc::default).clone())
}

/// Waits for the caller's token and takes it. std's `thread::park`; may return spuriously.
pub fn park() {
    let Some(g) = current() else { return sleep_on(&plain_permit().parker) };
    if g.permit.take() == PermitTaken::Yes {
        return;
    }
    block(WaitReason::Park, |_| g.permit.park() == PermitTaken::No);
    // The token that woke us, or none after a spurious wake.
    let _ = g.permit.take();
}

/// As [`park`], at most until `deadline`.
pub fn park_until(deadline: Instant) {
    let Some(g) = current() else {
        let left = deadline.saturating_duration_since(Instant::now());
        plain_permit().parker.sleep_for(left);
        return;
    };
    if g.permit.take() == PermitTaken::Yes {
        return;
    }
    timer::wait_with_deadline(
        WaitReason::Park,
        timer::after(deadline.saturating_duration_since(Instant::now())),
        |_| g.permit.park() == PermitTaken::No,
        || g.permit.time_out(),
    );
    let _ = g.permit.take();
}

/// How long until `deadline`, for those who count in nanoseconds.
pub(crate) fn nanoseconds(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}
