//! Words that a goroutine carries for profiles, and those that it spawns too.
//!
//! They lie beside the goroutine's name, so that a dump finds them and a goroutine without them pays
//! nothing. Until a program sets some it is one load in a spawn and at an end.
//!
//! Who may use them when
//! * The goroutine itself, and a signal handler that has interrupted it outside the runtime: always. It
//!   alone takes them away.
//! * Others: under the lock, which it takes to take them away.
//! * Who drains samples: until the drain after the one in which `take_garbage` gave them.

use crate::critical::Critical;
use crate::current::current;
use crate::goroutine::GRef;
use crate::slab;
use gosched_base::Lock;
use std::fmt;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, Release},
};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether any goroutine ever had some.
static ARE_USED: AtomicBool = AtomicBool::new(false);
/// Whether samples may hold their addresses.
static ARE_SAMPLED: AtomicBool = AtomicBool::new(false);
/// Held by who takes some away, and by who reads another goroutine's.
static TAKING: Lock<()> = Lock::new(());
/// Taken away while they were sampled.
static GARBAGE: Mutex<Vec<Arc<Labels>>> = Mutex::new(Vec::new());

/// Keys with a value each, sorted by key. Go's `pprof.LabelSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels(Vec<(String, String)>);

impl Labels {
    /// These, without those that have a key twice: the last one counts.
    #[must_use]
    pub fn new(pairs: &[(&str, &str)]) -> Labels {
        Labels::default().and(pairs)
    }

    /// These with others, which win.
    #[must_use]
    pub fn and(&self, pairs: &[(&str, &str)]) -> Labels {
        let mut all = self.0.clone();
        for (key, value) in pairs {
            all.retain(|(other, _)| other != key);
            all.push(((*key).to_owned(), (*value).to_owned()));
        }
        all.sort();
        Labels(all)
    }

    /// Each key and its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Go's form in dumps: `{key: value, other: value}`.
impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (key, value)) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{key}: {value}")?;
        }
        f.write_str("}")
    }
}

/// The caller's labels; `None` if it has none, or is a plain thread.
#[must_use]
pub fn labels() -> Option<Arc<Labels>> {
    own(current()?)
}

/// Runs `f` with `new` as the caller's labels, which goroutines that it spawns have too. Go's
/// `pprof.Do`. A plain thread has none; there it just calls `f`.
pub fn with_labels<R>(new: Arc<Labels>, f: impl FnOnce() -> R) -> R {
    /// Puts the former ones back.
    struct Former(GRef, Option<Arc<Labels>>);
    impl Drop for Former {
        fn drop(&mut self) {
            replace(self.0, self.1.take());
        }
    }
    let Some(g) = current() else { return f() };
    // ORDERING: Relaxed; the goroutine itself sees it, and whom it spawns.
    ARE_USED.store(true, Relaxed);
    let _former = Former(g, own(g));
    replace(g, Some(new));
    f()
}

/// Those of `g`, which is the caller.
fn own(g: GRef) -> Option<Arc<Labels>> {
    // ORDERING: Relaxed; the caller or its spawner wrote it.
    clone_of(slab::name_of(g).labels.load(Relaxed))
}

fn clone_of(labels: *const Labels) -> Option<Arc<Labels>> {
    if labels.is_null() {
        return None;
    }
    // SAFETY: the place holds a reference, which is not taken away meanwhile (see the module's page).
    unsafe { Arc::increment_strong_count(labels) };
    // SAFETY: counted just now.
    Some(unsafe { Arc::from_raw(labels) })
}

/// Gives `g`, which is the caller, other labels. Outside the runtime.
fn replace(g: GRef, new: Option<Arc<Labels>>) {
    let new = new.map_or(std::ptr::null_mut(), |new| Arc::into_raw(new).cast_mut());
    let old = {
        let _inside = Critical::enter();
        let _taking = TAKING.lock();
        // ORDERING: Release pairs with `of`.
        slab::name_of(g).labels.swap(new, Release)
    };
    if old.is_null() {
        return;
    }
    // SAFETY: the place's own reference, which only its goroutine takes.
    let old = unsafe { Arc::from_raw(old) };
    // ORDERING: Relaxed; a handler on this thread has come before, and after who set this.
    if ARE_SAMPLED.load(Relaxed) {
        GARBAGE.lock().unwrap_or_else(PoisonError::into_inner).push(old);
    }
}

/// The new goroutine `g` has those of the caller. Inside the runtime or not.
#[inline]
pub(crate) fn inherit(g: GRef) {
    // ORDERING: Relaxed; see `with_labels`.
    if ARE_USED.load(Relaxed) {
        inherit_now(g);
    }
}

#[cold]
fn inherit_now(g: GRef) {
    if let Some(labels) = labels() {
        // ORDERING: Release pairs with `of`.
        slab::name_of(g).labels.store(Arc::into_raw(labels).cast_mut(), Release);
    }
}

/// `g`, which is the caller, ends. Outside the runtime.
#[inline]
pub(crate) fn forget(g: GRef) {
    // ORDERING: Relaxed; see `with_labels`.
    if ARE_USED.load(Relaxed) {
        forget_now(g);
    }
}

#[cold]
fn forget_now(g: GRef) {
    // ORDERING: Relaxed; its own.
    if !slab::name_of(g).labels.load(Relaxed).is_null() {
        replace(g, None);
    }
}

/// Those of any goroutine. Outside the runtime.
pub(crate) fn of(g: GRef) -> Option<Arc<Labels>> {
    // ORDERING: Relaxed; who has just begun may be missed.
    if !ARE_USED.load(Relaxed) {
        return None;
    }
    let _inside = Critical::enter();
    let _taking = TAKING.lock();
    // ORDERING: Acquire pairs with who stored it.
    clone_of(slab::name_of(g).labels.load(std::sync::atomic::Ordering::Acquire))
}

/// The address of the labels of the goroutine that was interrupted outside the runtime; 0 without. In a
/// signal handler, between [`begin_sampling`] and [`end_sampling`].
#[cfg(feature = "frames")]
pub(crate) fn sampled() -> usize {
    let g = crate::current::current_outside();
    // ORDERING: Relaxed; the code that was interrupted, or its spawner, wrote it.
    g.map_or(0, |g| slab::name_of(g).labels.load(Relaxed).expose_provenance())
}

/// From now on samples may hold addresses of labels.
#[cfg(feature = "frames")]
pub fn begin_sampling() {
    // ORDERING: Release; timers are set after it, and their signals come after that.
    ARE_SAMPLED.store(true, Release);
}

/// No sample is taken any more; those that were taken are to be drained once more, after which what
/// [`take_garbage`] gives is nobody's.
#[cfg(feature = "frames")]
pub fn end_sampling() {
    // ORDERING: Relaxed; what is kept in vain goes with the next garbage.
    ARE_SAMPLED.store(false, Relaxed);
}

/// What was taken away so far: to be dropped once all samples that were complete by now are drained.
#[cfg(feature = "frames")]
#[must_use]
pub fn take_garbage() -> Vec<Arc<Labels>> {
    std::mem::take(&mut *GARBAGE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The labels at an address that a sample holds.
///
/// # Safety
/// * The sample is drained for the first time, and what [`take_garbage`] gave since it was taken was not
///   dropped.
#[cfg(feature = "frames")]
pub(crate) unsafe fn at(address: usize) -> Option<Arc<Labels>> {
    clone_of(std::ptr::with_exposed_provenance(address))
}
