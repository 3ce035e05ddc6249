//! Calls that see the thread's thread-locals, beside goroutines that are stopped and moved.

use crate::child::in_child;
use gosched::channel::bounded;
use gosched::{blocking, go, hosted, run, runtime, thread};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

static THREADS: Mutex<Option<HashSet<std::thread::ThreadId>>> = Mutex::new(None);
static CALLS: AtomicU64 = AtomicU64::new(0);

/// One call, which counts itself on its thread.
fn call() {
    CALLS.fetch_add(1, SeqCst);
    hosted(|| {
        let before = COUNT.replace(COUNT.get() + 1);
        TEXT.with_borrow_mut(|text| *text = before.to_string());
        let id = std::thread::current().id();
        let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        threads.get_or_insert_default().insert(id);
        drop(threads);
        assert!(!runtime::is_goroutine());
        assert_eq!(COUNT.get(), before + 1, "moved within a call");
        TEXT.with_borrow(|text| assert_eq!(*text, before.to_string()));
    });
}

/// The goroutine's own values stay its own, whatever thread each call is on.
fn worker(n: u64) {
    COUNT.set(n);
    TEXT.with_borrow_mut(|text| text.push_str(&format!("goroutine {n}")));
    for _ in 0..50 {
        call();
        (0..2_000).for_each(|_| std::hint::spin_loop());
        assert_eq!(COUNT.get(), n);
        TEXT.with_borrow(|text| assert_eq!(*text, format!("goroutine {n}")));
    }
}

fn many_goroutines_few_threads() {
    run(|| {
        let mut started = 0;
        let is_enough = || runtime::preemptions().in_place > 20 || !is_stopped_by_signal();
        while started < 200 || !is_enough() {
            let workers: Vec<_> = (0..100).map(|n| go(move || worker(started + n))).collect();
            workers.into_iter().for_each(|w| w.join().unwrap());
            started += 100;
        }
        let threads = THREADS.lock().unwrap().as_ref().map_or(0, HashSet::len) as u64;
        assert!(CALLS.load(SeqCst) >= 10_000);
        assert!(threads < started, "each goroutine had a thread of its own");
    });
}

fn is_stopped_by_signal() -> bool {
    let settings = std::env::var("GOSCHED").unwrap_or_default();
    ["tls=slot", "tls=shared"].iter().all(|mode| !settings.contains(mode))
}

#[test]
fn with_thread_locals_of_their_own() {
    let name = "hosted::with_thread_locals_of_their_own";
    in_child("procs=2,slice=100us", name, many_goroutines_few_threads);
}

#[test]
fn where_registers_need_system_calls() {
    let name = "hosted::where_registers_need_system_calls";
    in_child("procs=2,slice=100us,tls=syscall", name, many_goroutines_few_threads);
}

#[test]
fn on_blocks_of_dead_threads() {
    let name = "hosted::on_blocks_of_dead_threads";
    in_child("procs=2,slice=100us,tls=deadthread", name, many_goroutines_few_threads);
}

/// There the thread's thread-locals are everybody's anyway.
#[test]
fn with_shared_thread_locals() {
    in_child("procs=2,tls=shared", "hosted::with_shared_thread_locals", || {
        run(|| {
            let workers: Vec<_> = (0..100).map(|_| go(call)).collect();
            workers.into_iter().for_each(|w| w.join().unwrap());
            assert_eq!(CALLS.load(SeqCst), 100);
        });
    });
}

#[test]
fn values_panics_waits_and_plain_threads() {
    in_child("procs=2", "hosted::values_panics_waits_and_plain_threads", || {
        assert_eq!(hosted(|| "plain"), "plain");
        run(|| {
            let mut list = vec![1, 2];
            let text = hosted(|| {
                list.push(3);
                format!("{list:?}")
            });
            assert_eq!(text, "[1, 2, 3]");

            let panicked = catch_unwind(|| hosted(|| panic!("on purpose")));
            let message = *panicked.unwrap_err().downcast::<&str>().unwrap();
            assert_eq!(message, "on purpose");
            assert!(!std::thread::panicking());
            hosted(|| assert!(!std::thread::panicking()));

            COUNT.set(5);
            assert_eq!(hosted(|| hosted(|| COUNT.get())), 0);
            blocking(|| assert_eq!(hosted(|| COUNT.get()), 0));
            assert_eq!(COUNT.get(), 5);

            // It waits as a plain thread; the processor goes on.
            let (send, receive) = bounded(1);
            let other = go(move || {
                thread::yield_now();
                send.send(9).unwrap();
            });
            assert_eq!(hosted(|| receive.recv()), Ok(9));
            other.join().unwrap();
            assert!(hosted(|| go(runtime::is_goroutine).join().unwrap()));
        });
    });
}
