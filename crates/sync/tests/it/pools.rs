//! Pools and maps.

use crate::support::{Who, go};
use gosched_sched::age_caches;
use gosched_sync::{Arc, Map, Mutex, Pool};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Ages all pools of the process, so one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn a_value_is_used_again_until_it_is_two_cycles_old() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    static MADE: AtomicUsize = AtomicUsize::new(0);
    struct Value;
    impl Drop for Value {
        fn drop(&mut self) {
            assert!(!gosched_sched::is_in_runtime(), "user code inside the runtime");
            DROPPED.fetch_add(1, SeqCst);
        }
    }
    static POOL: Pool<Value> = Pool::new(|| {
        MADE.fetch_add(1, SeqCst);
        Value
    });
    let _one = ONE_AT_A_TIME.lock().unwrap();
    // A cycle that nobody here has asked for would be one too many.
    gosched_sched::set_background_gc(false);
    drop(POOL.get());
    drop(POOL.get());
    assert_eq!(MADE.load(SeqCst), 1, "used again");
    age_caches();
    drop(POOL.get());
    assert_eq!(MADE.load(SeqCst), 1, "old ones too, which are new then");
    age_caches();
    assert_eq!(DROPPED.load(SeqCst), 0);
    age_caches();
    assert_eq!(DROPPED.load(SeqCst), 1, "what nobody wants goes");
    let own = POOL.get().into_inner();
    assert_eq!(MADE.load(SeqCst), 2);
    POOL.put(own);
    for _ in 0..2 {
        age_caches();
    }
    assert_eq!(DROPPED.load(SeqCst), 2);
}

#[test]
fn a_pool_neither_loses_nor_doubles_values() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    static MADE: AtomicUsize = AtomicUsize::new(0);
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Value(AtomicUsize);
    impl Drop for Value {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, SeqCst);
        }
    }
    let pool = Arc::new(Pool::new(|| {
        MADE.fetch_add(1, SeqCst);
        Value(AtomicUsize::new(0))
    }));
    let users: Vec<_> = (0..16)
        .map(|n| {
            let pool = pool.clone();
            (if n % 4 == 0 { Who::Thread } else { Who::Goroutine }).start(move || {
                for i in 0..2000 {
                    let value = pool.get();
                    assert_eq!(value.0.fetch_add(1, SeqCst), 0, "two have it");
                    if i % 16 == 0 {
                        gosched_sched::yield_now();
                    }
                    value.0.fetch_sub(1, SeqCst);
                }
            })
        })
        .collect();
    let ager = go(|| {
        (0..200).for_each(|_| {
            age_caches();
            gosched_sched::yield_now();
        })
    });
    users.into_iter().for_each(|u| u.join());
    ager.join().unwrap();
    assert!(MADE.load(SeqCst) < 16 * 2000, "values are used again");
    drop(pool);
    assert_eq!(MADE.load(SeqCst), DROPPED.load(SeqCst));
}

#[test]
fn a_map_has_the_operations_of_gos() {
    let map: Map<String, u32> = Map::default();
    assert_eq!(map.get("a"), None);
    assert_eq!(map.insert("a".into(), 1), None);
    assert_eq!(map.insert("a".into(), 2), Some(1));
    assert_eq!(map.get_or_insert_with("a".into(), || unreachable!()), 2);
    assert_eq!(map.get_or_insert_with("b".into(), || 3), 3);
    assert!(!map.compare_and_swap("a", &1, 9) && map.compare_and_swap("a", &2, 9));
    assert!(!map.compare_and_swap("z", &1, 9));
    let mut entries = map.entries();
    entries.sort();
    assert_eq!(entries, [("a".to_string(), 9), ("b".to_string(), 3)]);
    assert!(!map.compare_and_remove("a", &2) && map.compare_and_remove("a", &9));
    assert!(!map.contains_key("a") && map.contains_key("b"));
    assert_eq!((map.len(), map.remove("b"), map.remove("b")), (1, Some(3), None));
    map.insert("c".into(), 4);
    map.clear();
    assert!(map.is_empty());
}

#[test]
fn a_map_counts_right_for_many() {
    let map: Arc<Map<u32, usize>> = Arc::new(Map::new());
    let users: Vec<_> = (0..8)
        .map(|n| {
            let map = map.clone();
            (if n % 2 == 0 { Who::Goroutine } else { Who::Thread }).start(move || {
                let mut stored = 0;
                for key in 0..500 {
                    let before = map.get_or_insert_with(key % 50, || 0);
                    stored += usize::from(map.compare_and_swap(&(key % 50), &before, before + 1));
                }
                stored
            })
        })
        .collect();
    let stored: usize = users.into_iter().map(|u| u.join()).sum();
    assert_eq!(map.entries().iter().map(|(_, n)| n).sum::<usize>(), stored);
    assert!(stored > 0);
}
