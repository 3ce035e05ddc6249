//! Once, OnceLock and LazyLock.

use crate::support::{ALL, PAIRS, Who};
use gosched_sync::{Arc, LazyLock, Once, OnceLock, mpsc};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[test]
fn one_of_many_runs_it_and_all_see_it() {
    for (one, other) in PAIRS {
        let shared = Arc::new((Once::new(), AtomicUsize::new(0)));
        let all: Vec<_> = (0..10)
            .map(|n| {
                let shared = shared.clone();
                (if n % 2 == 0 { one } else { other }).start(move || {
                    shared.0.call_once(|| {
                        gosched_sched::yield_now();
                        shared.1.fetch_add(1, SeqCst);
                    });
                    assert_eq!(shared.1.load(SeqCst), 1);
                })
            })
            .collect();
        all.into_iter().for_each(|w| w.join());
        assert!(shared.0.is_completed());
    }
}

#[test]
fn a_panic_poisons_it_until_it_is_forced() {
    let once = Once::new();
    let call = |f: &dyn Fn()| catch_unwind(AssertUnwindSafe(|| once.call_once(f))).is_err();
    assert!(call(&|| panic!("on purpose")));
    assert!(!once.is_completed());
    assert!(call(&|| unreachable!()), "poisoned");
    let mut was_poisoned = None;
    once.call_once_force(|state| was_poisoned = Some(state.is_poisoned()));
    assert_eq!(was_poisoned, Some(true));
    assert!(once.is_completed());
    assert!(!call(&|| unreachable!()));
    once.call_once_force(|_| unreachable!());
}

#[test]
fn those_who_wait_hear_of_it() {
    for (one, other) in PAIRS {
        let once = Arc::new(Once::new());
        let waiters: Vec<_> = [one, other]
            .map(|who| {
                let once = once.clone();
                who.start(move || once.wait())
            })
            .into_iter()
            .collect();
        once.call_once(|| {});
        waiters.into_iter().for_each(|w| w.join());
    }
}

#[test]
fn a_once_lock_is_written_once() {
    for who in ALL {
        let lock = Arc::new(OnceLock::new());
        assert_eq!(lock.get(), None);
        let reader = who.start({
            let lock = lock.clone();
            move || *lock.wait()
        });
        assert_eq!(lock.set(3), Ok(()));
        assert_eq!(lock.set(4), Err(4));
        assert_eq!(*lock.get_or_init(|| unreachable!()), 3);
        assert_eq!(reader.join(), 3);
        let mut lock = Arc::into_inner(lock).unwrap();
        assert_eq!(lock.take(), Some(3));
        assert_eq!(lock.get(), None);
        assert_eq!(lock.set(5), Ok(()));
        *lock.get_mut().unwrap() += 1;
        assert_eq!(lock.clone(), OnceLock::from(6));
        assert_eq!(
            format!("{lock:?} {:?}", OnceLock::<u8>::new()),
            "OnceLock(6) OnceLock(<uninit>)"
        );
        assert_eq!(lock.into_inner(), Some(6));
    }
}

#[test]
fn a_once_lock_tries_again_after_a_panic() {
    let lock = OnceLock::new();
    let first = catch_unwind(AssertUnwindSafe(|| *lock.get_or_init(|| panic!("on purpose"))));
    assert!(first.is_err() && lock.get().is_none());
    assert_eq!(*lock.get_or_init(|| 7), 7);
}

#[test]
fn values_are_dropped_once() {
    let count = Arc::new(());
    drop(OnceLock::from(count.clone()));
    let lock = OnceLock::new();
    lock.set(count.clone()).unwrap();
    assert!(lock.set(count.clone()).is_err());
    drop(lock);
    drop(OnceLock::<Arc<()>>::new());
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn a_lazy_value_is_made_when_it_is_wanted() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    static VALUE: LazyLock<usize> = LazyLock::new(|| MADE.fetch_add(1, SeqCst) + 10);
    assert_eq!(MADE.load(SeqCst), 0);
    let all = [Who::Goroutine, Who::Thread].map(|who| who.start(|| *VALUE));
    assert_eq!(all.map(|w| w.join()), [10, 10]);
    assert_eq!(MADE.load(SeqCst), 1);
    let failing: LazyLock<u32> = LazyLock::new(|| panic!("on purpose"));
    for _ in 0..2 {
        assert!(catch_unwind(AssertUnwindSafe(|| *failing)).is_err());
    }
}

#[test]
fn mpsc_has_stds_shape() {
    use mpsc::{RecvTimeoutError, TryRecvError, TrySendError};
    for who in ALL {
        let (sender, receiver) = mpsc::channel();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        let timeout = receiver.recv_timeout(crate::support::ms(1));
        assert_eq!(timeout, Err(RecvTimeoutError::Timeout));
        let senders: Vec<_> = (0..3)
            .map(|n| {
                let sender = sender.clone();
                who.start(move || (0..10).for_each(|i| sender.send(10 * n + i).unwrap()))
            })
            .collect();
        drop(sender);
        let mut all: Vec<u32> = receiver.iter().collect();
        senders.into_iter().for_each(|s| s.join());
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(0..30));
        assert!(receiver.recv().is_err());
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    sender.send(1).unwrap();
    assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1]);
    drop(receiver);
    assert_eq!(sender.try_send(3), Err(TrySendError::Disconnected(3)));
    assert_eq!(sender.send(4), Err(mpsc::SendError(4)));
}
