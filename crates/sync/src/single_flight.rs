//! Many who want the same at once get it from one call. Go's `golang.org/x/sync/singleflight`.

use crate::mutex::{Mutex, MutexGuard};
use crate::once_lock::OnceLock;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, PoisonError};

/// Calls by key, of which one runs at a time; those who ask meanwhile share its result. Go's
/// `singleflight.Group`.
///
/// ```
/// use gosched_sync::SingleFlight;
///
/// let pages = SingleFlight::new();
/// let (page, shared) = pages.run("/", || "a page".to_string());
/// assert_eq!((page.as_str(), shared), ("a page", false));
/// ```
pub struct SingleFlight<K, V> {
    calls: Mutex<HashMap<K, Arc<Call<V>>>>,
}

/// One call that runs.
struct Call<V> {
    /// `None` if it has panicked.
    result: OnceLock<Option<V>>,
    joined: OnceLock<()>,
}

/// Ends a call, also when its function unwinds.
struct Leader<'a, K: Eq + Hash, V> {
    flight: &'a SingleFlight<K, V>,
    key: &'a K,
    call: Arc<Call<V>>,
}

impl<K: Eq + Hash, V> Drop for Leader<'_, K, V> {
    fn drop(&mut self) {
        let mut calls = self.flight.lock();
        let is_ours = calls.get(self.key).is_some_and(|call| Arc::ptr_eq(call, &self.call));
        let entry = if is_ours { calls.remove_entry(self.key) } else { None };
        drop(calls);
        drop(entry);
        // Written before if the function has returned.
        let _panicked = self.call.result.set(None);
    }
}

impl<K: Eq + Hash + Clone, V: Clone> SingleFlight<K, V> {
    /// Without calls.
    #[must_use]
    pub fn new() -> SingleFlight<K, V> {
        SingleFlight { calls: Mutex::new(HashMap::new()) }
    }

    /// Runs `f`, or waits for the call of this key that runs. The flag says whether the result went
    /// to several.
    ///
    /// # Panics
    /// If `f` panics; and in those who wait for it too.
    pub fn run<F: FnOnce() -> V>(&self, key: K, f: F) -> (V, bool) {
        let mut calls = self.lock();
        if let Some(call) = calls.get(&key).cloned() {
            drop(calls);
            return (call.join(), true);
        }
        let call = Arc::new(Call { result: OnceLock::new(), joined: OnceLock::new() });
        calls.insert(key.clone(), call.clone());
        drop(calls);
        let leader = Leader { flight: self, key: &key, call };
        let value = f();
        // Nobody else writes it.
        let _first = leader.call.result.set(Some(value.clone()));
        let call = leader.call.clone();
        drop(leader);
        (value, call.joined.get().is_some())
    }

    /// Lets the next one who asks for `key` begin a new call, though one may run.
    pub fn forget(&self, key: &K) {
        let entry = self.lock().remove_entry(key);
        drop(entry);
    }
}

impl<K, V> SingleFlight<K, V> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<Call<V>>>> {
        // A panic of a key's functions leaves the map whole.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: Clone> Call<V> {
    fn join(&self) -> V {
        // The first to join says so.
        let _again = self.joined.set(());
        match self.result.wait() {
            Some(value) => value.clone(),
            None => panic!("SingleFlight: the call has panicked"),
        }
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Default for SingleFlight<K, V> {
    fn default() -> SingleFlight<K, V> {
        SingleFlight::new()
    }
}

impl<K, V> fmt::Debug for SingleFlight<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").field("calls", &self.lock().len()).finish()
    }
}
