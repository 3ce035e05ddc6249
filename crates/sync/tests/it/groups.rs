//! Groups whose first error cancels the rest, and calls that are shared.

use crate::support::Who;
use gosched_sync::context::{self, ContextError};
use gosched_sync::{Arc, Group, SingleFlight, mpsc};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[test]
fn without_an_error_all_run_and_the_context_ends_with_the_wait() {
    let group: Group<&str> = Group::new(&context::background());
    let (ctx, ran) = (group.context().clone(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..10 {
        let ran = ran.clone();
        group.go(move |ctx| {
            assert_eq!(ctx.err(), None);
            ran.fetch_add(1, SeqCst);
            Ok(())
        });
    }
    assert_eq!(group.wait(), Ok(()));
    assert_eq!(ran.load(SeqCst), 10);
    assert_eq!(ctx.err(), Some(ContextError::Canceled));
}

#[test]
fn the_first_error_cancels_the_rest_and_is_returned() {
    let group = Group::new(&context::background());
    let (say, told) = mpsc::channel();
    for n in 1..=10 {
        let say = say.clone();
        group.go(move |ctx| {
            ctx.done().recv().unwrap_err();
            say.send(ctx.cause().unwrap().to_string()).unwrap();
            Err(n)
        });
    }
    group.go(|_| Err(0));
    assert_eq!(group.wait(), Err(0));
    drop(say);
    let causes: Vec<_> = told.iter().collect();
    assert_eq!(causes, vec!["another goroutine of the group has failed"; 10]);
}

#[test]
fn the_parent_cancels_a_group() {
    let (parent, cancel) = context::with_cancel(&context::background());
    let group = Group::new(&parent);
    group.go(|ctx| {
        ctx.done().recv().unwrap_err();
        Err(ctx.err().unwrap())
    });
    cancel.cancel();
    assert_eq!(group.wait(), Err(ContextError::Canceled));
}

#[test]
fn a_panic_cancels_the_rest_and_reaches_the_waiter() {
    let group: Group<()> = Group::new(&context::background());
    group.go(|ctx| {
        ctx.done().recv().unwrap_err();
        Ok(())
    });
    group.go(|_| panic!("on purpose"));
    let payload = catch_unwind(AssertUnwindSafe(|| group.wait())).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"on purpose"));
}

#[test]
fn a_limit_bounds_how_many_run() {
    let group: Group<()> = Group::with_limit(&context::background(), 2);
    let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    for _ in 0..20 {
        let counts = counts.clone();
        group.go(move |_| {
            let running = counts.0.fetch_add(1, SeqCst) + 1;
            counts.1.fetch_max(running, SeqCst);
            gosched_sched::yield_now();
            counts.0.fetch_sub(1, SeqCst);
            Ok(())
        });
    }
    group.wait().unwrap();
    assert!((1..=2).contains(&counts.1.load(SeqCst)));

    let group: Group<()> = Group::with_limit(&context::background(), 1);
    let (let_go, told) = mpsc::channel();
    group.go(move |_| {
        told.recv().unwrap();
        Ok(())
    });
    assert!(!group.try_go(|_| unreachable!()));
    let_go.send(()).unwrap();
    group.wait().unwrap();
    assert!(catch_unwind(|| Group::<()>::with_limit(&context::background(), 0)).is_err());
}

/// A key that counts how often it was looked up and found.
#[derive(Clone)]
struct Counted(&'static str, Arc<AtomicUsize>);

impl PartialEq for Counted {
    fn eq(&self, other: &Counted) -> bool {
        let is_same = self.0 == other.0;
        self.1.fetch_add(usize::from(is_same), SeqCst);
        is_same
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn those_who_ask_meanwhile_share_one_call() {
    let found = Arc::new(AtomicUsize::new(0));
    let key = |name| Counted(name, found.clone());
    let shared = Arc::new((SingleFlight::new(), AtomicUsize::new(0)));
    let (let_go, told) = mpsc::channel::<()>();
    let leader = Who::Goroutine.start({
        let (shared, key) = (shared.clone(), key("key"));
        move || {
            shared.0.run(key, || {
                shared.1.fetch_add(1, SeqCst);
                let _end = told.recv();
                7
            })
        }
    });
    while shared.1.load(SeqCst) == 0 {
        gosched_sched::yield_now();
    }
    let others: Vec<_> = (0..10)
        .map(|n| {
            let (shared, key) = (shared.clone(), key("key"));
            (if n % 2 == 0 { Who::Goroutine } else { Who::Thread })
                .start(move || shared.0.run(key, || unreachable!()))
        })
        .collect();
    // Its own entry is found when its call ends, which counts for nobody.
    let another = Counted("another key", Arc::default());
    assert_eq!(shared.0.run(another, || 8), (8, false));
    while found.load(SeqCst) < 10 {
        gosched_sched::yield_now();
    }
    drop(let_go);
    assert_eq!(leader.join(), (7, true));
    assert!(others.into_iter().all(|w| w.join() == (7, true)));
    assert_eq!(shared.0.run(key("key"), || 9), (9, false), "a new call");
}

#[test]
fn a_panic_reaches_all_and_a_forgotten_call_is_begun_anew() {
    let flight = Arc::new(SingleFlight::<u32, u32>::new());
    let panicked = catch_unwind(AssertUnwindSafe(|| flight.run(1, || panic!("on purpose"))));
    assert!(panicked.is_err());
    assert_eq!(flight.run(1, || 2), (2, false));
    let inner = flight.clone();
    let nested = flight.run(1, || {
        inner.forget(&1);
        inner.run(1, || 3).0 + 1
    });
    assert_eq!(nested, (4, false));
}
