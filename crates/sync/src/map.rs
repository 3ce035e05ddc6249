//! A map for many at once. Go's `sync.Map`.

use crate::rw_lock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use gosched_base::CachePadded;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::PoisonError;

/// How many parts: more than run at once on most machines, and a power of two.
const SHARDS: usize = 64;

/// A map that many use at once. Go's `sync.Map`, with the names of [`HashMap`].
///
/// It is many maps, each behind a lock for readers and writers of its own, so that those who want
/// different keys rarely meet. Values come back as clones; for large ones use an `Arc`. What walks
/// all entries sees each part as it is when it gets there, not one moment of all (as Go's `Range`).
///
/// ```
/// let ages = gosched_sync::Map::new();
/// ages.insert("Ann", 7);
/// assert_eq!(ages.get_or_insert_with("Ann", || 8), 7);
/// assert_eq!(ages.remove("Ann"), Some(7));
/// assert_eq!(ages.get("Ann"), None);
/// ```
pub struct Map<K, V, S = RandomState> {
    shards: Box<[CachePadded<Shard<K, V>>]>,
    hasher: S,
}

type Shard<K, V> = RwLock<HashMap<K, V>>;

impl<K: Eq + Hash, V: Clone> Map<K, V> {
    /// Without entries.
    #[must_use]
    pub fn new() -> Map<K, V> {
        Map::with_hasher(RandomState::new())
    }
}

impl<K: Eq + Hash, V: Clone, S: BuildHasher> Map<K, V, S> {
    /// Without entries; `hasher` says which keys meet.
    pub fn with_hasher(hasher: S) -> Map<K, V, S> {
        let shards = (0..SHARDS).map(|_| CachePadded::new(RwLock::default())).collect();
        Map { shards, hasher }
    }

    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> &Shard<K, V> {
        // The upper bits: the lower ones are those of the maps inside.
        let index = self.hasher.hash_one(key) >> (u64::BITS - SHARDS.trailing_zeros());
        &self.shards[index as usize]
    }

    fn read<Q: Hash + ?Sized>(&self, key: &Q) -> RwLockReadGuard<'_, HashMap<K, V>> {
        // A panic of a key's or a value's functions leaves the map whole.
        self.shard(key).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<Q: Hash + ?Sized>(&self, key: &Q) -> RwLockWriteGuard<'_, HashMap<K, V>> {
        self.shard(key).write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key's value.
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.read(key).get(key).cloned()
    }

    /// Whether the key has a value.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.read(key).contains_key(key)
    }

    /// Gives the key a value; returns the one before. Go's `Swap`.
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.write(&key).insert(key, value)
    }

    /// The key's value, which `make` makes if there was none. Go's `LoadOrStore`.
    ///
    /// `make` runs without the lock, so another's value may be the one that counts.
    pub fn get_or_insert_with<F: FnOnce() -> V>(&self, key: K, make: F) -> V {
        if let Some(value) = self.get(&key) {
            return value;
        }
        let value = make();
        self.write(&key).entry(key).or_insert(value).clone()
    }

    /// Takes the key's value out. Go's `LoadAndDelete`.
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let entry = self.write(key).remove_entry(key);
        entry.map(|(_, value)| value)
    }

    /// Replaces the key's value if it is `old`; whether it was. Go's `CompareAndSwap`.
    pub fn compare_and_swap<Q>(&self, key: &Q, old: &V, new: V) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        V: PartialEq,
    {
        let mut map = self.write(key);
        match map.get_mut(key) {
            Some(value) if value == old => {
                let old = std::mem::replace(value, new);
                drop(map);
                drop(old);
                true
            }
            _ => false,
        }
    }

    /// Takes the key out if its value is `old`; whether it was. Go's `CompareAndDelete`.
    pub fn compare_and_remove<Q>(&self, key: &Q, old: &V) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        V: PartialEq,
    {
        let mut map = self.write(key);
        let is_old = map.get(key).is_some_and(|value| value == old);
        let entry = if is_old { map.remove_entry(key) } else { None };
        drop(map);
        entry.is_some()
    }

    /// Every entry, as clones, in no order. Go's `Range`.
    #[must_use]
    pub fn entries(&self) -> Vec<(K, V)>
    where
        K: Clone,
    {
        let mut entries = Vec::new();
        for shard in &self.shards {
            let map = shard.read().unwrap_or_else(PoisonError::into_inner);
            entries.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        entries
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        let len = |shard: &Shard<K, V>| shard.read().unwrap_or_else(PoisonError::into_inner).len();
        self.shards.iter().map(|shard| len(shard)).sum()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes all entries out. Go's `Clear`.
    pub fn clear(&self) {
        for shard in &self.shards {
            let map = std::mem::take(&mut *shard.write().unwrap_or_else(PoisonError::into_inner));
            drop(map);
        }
    }
}

impl<K: Eq + Hash, V: Clone, S: BuildHasher + Default> Default for Map<K, V, S> {
    fn default() -> Map<K, V, S> {
        Map::with_hasher(S::default())
    }
}

impl<K: Eq + Hash, V: Clone, S: BuildHasher> fmt::Debug for Map<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("len", &self.len()).finish_non_exhaustive()
    }
}
