//! `gosched::thread` in the shape of `std::thread`, from goroutines and from plain threads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::time::{Duration, Instant};

use gosched::thread::{self, Builder, JoinHandle, Thread};
use gosched::{go, run, runtime};

/// Runs `f` on a plain thread, then in a goroutine.
fn on_both(f: fn()) {
    assert!(!runtime::is_goroutine());
    f();
    run(move || {
        assert!(runtime::is_goroutine());
        f();
    });
}

fn text(payload: &(dyn Any + Send)) -> &str {
    payload.downcast_ref::<&str>().expect("a text")
}

/// Closures that fill a task's block, are one byte too large for it, or are aligned more strictly.
#[test]
fn closures_of_every_size_are_run_and_dropped_once() {
    #[repr(align(128))]
    struct Aligned(u8);

    fn one<const BYTES: usize>(dropped: &Arc<()>, named: bool, is_joined: bool) {
        let (held, bytes, aligned) = (Arc::clone(dropped), [3_u8; BYTES], Aligned(4));
        let builder = if named { Builder::new().name("x".repeat(BYTES)) } else { Builder::new() };
        let is_large = BYTES % 2 == 1;
        let task = move || {
            let sum: usize = bytes.iter().map(|byte| usize::from(*byte)).sum();
            (held, sum)
        };
        if is_large {
            let task = move || {
                let at = &raw const aligned;
                assert_eq!((at.addr() % 128, aligned.0), (0, 4));
                task()
            };
            finish::<BYTES>(builder.spawn(task).expect("a goroutine"), is_joined);
        } else {
            finish::<BYTES>(builder.spawn(task).expect("a goroutine"), is_joined);
        }
    }

    fn finish<const BYTES: usize>(task: JoinHandle<(Arc<()>, usize)>, is_joined: bool) {
        if is_joined {
            assert_eq!(task.join().expect("it does not panic").1, 3 * BYTES);
        }
    }

    on_both(|| {
        let dropped = Arc::new(());
        for round in 0..200 {
            let (named, is_joined) = (round % 3 == 0, round % 2 == 0);
            one::<0>(&dropped, named, is_joined);
            one::<1>(&dropped, named, is_joined);
            one::<71>(&dropped, named, is_joined);
            one::<72>(&dropped, named, is_joined);
            one::<74>(&dropped, named, is_joined);
            one::<5000>(&dropped, named, is_joined);
        }
        while Arc::strong_count(&dropped) > 1 {
            thread::sleep(Duration::from_micros(100));
        }
    });
}

#[test]
fn results_and_panics_come_back() {
    on_both(|| {
        assert_eq!(thread::spawn(|| 6 * 7).join().expect("it does not panic"), 42);
        let payload = thread::spawn(|| panic!("no")).join().expect_err("it panics");
        assert_eq!(text(&*payload), "no");
        let large = thread::spawn(|| [7_u8; 10_000]).join().expect("it does not panic");
        assert!(large.iter().all(|byte| *byte == 7));
        thread::spawn(|| ()).join().expect("nothing to bring back");
    });
}

#[test]
fn builders_name_and_size() {
    on_both(|| {
        let own_name = || thread::current().name().map(String::from);
        let named = Builder::new().name("worker".into()).spawn(own_name).expect("a goroutine");
        assert_eq!(named.thread().name(), Some("worker"));
        assert_eq!(named.join().expect("it does not panic").as_deref(), Some("worker"));
        assert_eq!(go(own_name).join().expect("it does not panic"), None);
        let deep =
            Builder::new().stack_size(4 << 20).spawn(|| touch(1 << 20)).expect("a goroutine");
        assert_eq!(deep.join().expect("it does not panic"), 1 << 20);
        let error = Builder::new().stack_size(usize::MAX).spawn(|| ()).expect_err("too large");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    });
}

/// Uses `bytes` of stack.
fn touch(bytes: usize) -> usize {
    let frame = [1_u8; 1024];
    let here = std::hint::black_box(&frame).len();
    if bytes > here { here + touch(bytes - here) } else { here }
}

/// What a builder that fails does with the closure.
#[test]
fn a_failed_spawn_drops_its_closure() {
    let owned = Arc::new(());
    let inner = owned.clone();
    let failed = Builder::new().stack_size(usize::MAX).spawn(move || drop(inner));
    assert!(failed.is_err());
    assert_eq!(Arc::strong_count(&owned), 1);
}

#[test]
fn scopes_borrow() {
    on_both(|| {
        let (mut squares, offset) = (vec![0; 100], 7);
        thread::scope(|scope| {
            for (i, square) in squares.iter_mut().enumerate() {
                scope.spawn(move || {
                    thread::yield_now();
                    *square = i * i + offset;
                });
            }
        });
        assert!(squares.iter().enumerate().all(|(i, square)| *square == i * i + 7));
    });
}

#[test]
fn scoped_results_may_borrow() {
    on_both(|| {
        let words = [String::from("a"), String::from("bc")];
        let longest: &str = thread::scope(|scope| {
            let longest = scope.spawn(|| words.iter().max_by_key(|w| w.len()).expect("some"));
            let unjoined = scope.spawn(|| &words[0]);
            assert!(unjoined.thread().name().is_none());
            longest.join().expect("it does not panic")
        });
        assert_eq!(longest, "bc");
    });
}

#[test]
fn scopes_nest() {
    on_both(|| {
        let count = AtomicUsize::new(0);
        thread::scope(|outer| {
            for _ in 0..10 {
                outer.spawn(|| {
                    thread::scope(|inner| {
                        for _ in 0..10 {
                            inner.spawn(|| count.fetch_add(1, SeqCst));
                        }
                        // From inside a goroutine of the outer one, into the outer one.
                        outer.spawn(|| count.fetch_add(1, SeqCst));
                    });
                });
            }
        });
        assert_eq!(count.load(SeqCst), 110);
    });
}

#[test]
fn a_scope_waits_for_its_goroutines_when_it_panics() {
    on_both(|| {
        let ended = AtomicUsize::new(0);
        let payload = catch_unwind(AssertUnwindSafe(|| {
            thread::scope(|scope| {
                for _ in 0..20 {
                    scope.spawn(|| {
                        thread::sleep(Duration::from_millis(2));
                        ended.fetch_add(1, SeqCst);
                    });
                }
                panic!("the scope's own");
            })
        }))
        .expect_err("it panics");
        assert_eq!(ended.load(SeqCst), 20);
        assert_eq!(text(&*payload), "the scope's own");
    });
}

#[test]
fn a_scoped_panic_that_nobody_joins_is_the_scopes() {
    on_both(|| {
        let panics = || thread::scope(|scope| drop(scope.spawn(|| panic!("scoped"))));
        let payload = catch_unwind(panics).expect_err("it panics");
        assert_eq!(text(&*payload), "a scoped goroutine panicked");
        let caught = thread::scope(|scope| scope.spawn(|| panic!("scoped")).join().is_err());
        assert!(caught);
    });
}

#[test]
fn park_takes_one_token() {
    on_both(|| {
        thread::current().unpark();
        thread::current().unpark();
        thread::park();
        let woken = Arc::new(AtomicBool::new(false));
        let (me, flag) = (thread::current(), woken.clone());
        let waker = go(move || {
            flag.store(true, SeqCst);
            me.unpark();
        });
        // std's park may return spuriously, and so may this one.
        while !woken.load(SeqCst) {
            thread::park();
        }
        waker.join().expect("it does not panic");
    });
}

#[test]
fn unpark_comes_from_everywhere() {
    for _ in 0..200 {
        let parked = go(|| {
            thread::park();
            thread::park();
        });
        let from_thread: Thread = parked.thread();
        let from_goroutine = from_thread.clone();
        std::thread::spawn(move || from_thread.unpark()).join().expect("it does not panic");
        go(move || from_goroutine.unpark()).join().expect("it does not panic");
        // Both tokens may have come before the first park and been one.
        while !parked.is_finished() {
            parked.thread().unpark();
            thread::yield_now();
        }
        parked.join().expect("it does not panic");
    }
}

#[test]
fn a_handle_of_one_that_ended_harms_nobody() {
    run(|| {
        let ended: Vec<Thread> = (0..100).map(|_| ended_thread()).collect();
        let parked: Vec<_> = (0..100).map(|_| go(thread::park)).collect();
        for _ in 0..100 {
            ended.iter().for_each(Thread::unpark);
            thread::yield_now();
        }
        parked.iter().for_each(|p| p.thread().unpark());
        parked.into_iter().for_each(|p| p.join().expect("it does not panic"));
    });
}

fn ended_thread() -> Thread {
    let handle = go(|| ());
    let thread = handle.thread();
    handle.join().expect("it does not panic");
    thread
}

#[test]
fn sleeps_last_at_least_as_long_as_asked() {
    on_both(|| {
        for us in [0, 1, 50, 999, 3_000] {
            let (asked, start) = (Duration::from_micros(us), Instant::now());
            thread::sleep(asked);
            assert!(start.elapsed() >= asked);
            let deadline = Instant::now() + asked;
            thread::sleep_until(deadline);
            assert!(Instant::now() >= deadline);
        }
    });
}

#[test]
fn park_timeout_ends_with_or_without_a_token() {
    on_both(|| {
        thread::park_timeout(Duration::from_millis(2));
        thread::park_timeout(Duration::ZERO);
        thread::current().unpark();
        // Were the token not taken, this would last for ever.
        thread::park_timeout(Duration::MAX);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(3) {
            thread::park_timeout(Duration::from_millis(3));
        }
    });
}

/// Tokens and time-outs race for the same goroutine, many times.
#[test]
fn tokens_race_with_timeouts() {
    static TOKENS: AtomicUsize = AtomicUsize::new(0);
    let parked = go(|| {
        let mut seen = 0;
        while seen < 2000 {
            thread::park_timeout(Duration::from_micros(30));
            seen = TOKENS.load(SeqCst);
        }
    });
    let target = parked.thread();
    let waker = go(move || {
        for i in 0..2000 {
            TOKENS.fetch_add(1, SeqCst);
            target.unpark();
            if i % 3 == 0 {
                thread::sleep(Duration::from_micros(30));
            }
        }
    });
    waker.join().expect("it does not panic");
    parked.join().expect("it does not panic");
}

#[test]
fn is_finished_says_so() {
    on_both(|| {
        let handle = go(thread::park);
        assert!(!handle.is_finished());
        handle.thread().unpark();
        while !handle.is_finished() {
            thread::yield_now();
        }
        handle.join().expect("it does not panic");
    });
}

#[test]
fn handles_cross_threads() {
    fn crosses<T: Send + Sync + 'static>(_: &T) {}
    let handle: JoinHandle<std::cell::Cell<u8>> = go(|| std::cell::Cell::new(1));
    crosses(&handle);
    crosses(&handle.thread());
    let joined = std::thread::spawn(move || handle.join().expect("it does not panic").get());
    assert_eq!(joined.join().expect("it does not panic"), 1);
    let handle = go(|| 2);
    let joined = go(move || handle.join().expect("it does not panic"));
    assert_eq!(joined.join().expect("it does not panic"), 2);
}

struct CountsDrops(Arc<AtomicUsize>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A result is dropped once, whoever has it last: its handle or its goroutine.
#[test]
fn results_are_dropped_once() {
    const COUNT: usize = 3000;
    let drops = Arc::new(AtomicUsize::new(0));
    run({
        let drops = drops.clone();
        move || {
            for i in 0..COUNT {
                let result = CountsDrops(drops.clone());
                let handle = go(move || {
                    (0..i % 3).for_each(|_| thread::yield_now());
                    result
                });
                (0..i % 5).for_each(|_| thread::yield_now());
                if i % 2 == 0 { drop(handle) } else { drop(handle.join()) }
            }
        }
    });
    while drops.load(SeqCst) < COUNT {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(5));
    assert_eq!(drops.load(SeqCst), COUNT);
}

std::thread_local! {
    static LATE: std::cell::RefCell<Option<CountsDrops>> = const { std::cell::RefCell::new(None) };
}

/// `join` returns after the thread-locals' destructors, and each goroutine finds them new.
#[test]
fn thread_locals_end_before_join() {
    on_both(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        for i in 0..100 {
            let mine = drops.clone();
            let user = go(move || {
                LATE.with_borrow_mut(|late| {
                    assert!(late.is_none());
                    *late = Some(CountsDrops(mine));
                });
                thread::yield_now();
                LATE.with_borrow(|late| assert!(late.is_some()));
            });
            user.join().expect("it does not panic");
            assert_eq!(drops.load(SeqCst), i + 1);
        }
    });
}

/// Its drop uses a thread-local, as that of many a value does.
struct UsesThreadLocal;

impl Drop for UsesThreadLocal {
    fn drop(&mut self) {
        LATE.with_borrow(|late| assert!(late.is_none()));
    }
}

/// A handle that is dropped just when its goroutine ends: whoever drops the result must have
/// thread-locals that still work.
#[test]
fn a_result_is_never_dropped_after_thread_locals() {
    static RACES: AtomicUsize = AtomicUsize::new(0);
    run(|| {
        let racers: Vec<_> = (0..8)
            .map(|_| {
                go(|| {
                    for _ in 0..3000 {
                        let handle = go(|| {
                            LATE.with_borrow_mut(|late| *late = None);
                            UsesThreadLocal
                        });
                        (0..RACES.fetch_add(1, Relaxed) % 40).for_each(|_| std::hint::spin_loop());
                        thread::yield_now();
                        drop(handle);
                    }
                })
            })
            .collect();
        racers.into_iter().for_each(|racer| racer.join().expect("it does not panic"));
    });
}

/// As a thread-local's value: says that it ends, and waits until the handle is gone.
struct EndsSlowly {
    ending: Arc<AtomicBool>,
    handle_is_gone: Arc<AtomicBool>,
}

impl Drop for EndsSlowly {
    fn drop(&mut self) {
        self.ending.store(true, SeqCst);
        while !self.handle_is_gone.load(SeqCst) {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

std::thread_local! {
    static SLOW: std::cell::RefCell<Option<EndsSlowly>> = const { std::cell::RefCell::new(None) };
}

/// The handle is dropped while the goroutine's thread-locals end: the result's drop finds new ones,
/// and what it leaves in them ends as well.
#[test]
fn a_result_whose_handle_goes_late_finds_thread_locals() {
    struct LeavesOne(Arc<AtomicUsize>);
    impl Drop for LeavesOne {
        fn drop(&mut self) {
            LATE.with_borrow_mut(|late| {
                assert!(late.is_none());
                *late = Some(CountsDrops(self.0.clone()));
            });
        }
    }
    on_both(|| {
        for _ in 0..20 {
            let (ending, gone) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
            let slow = EndsSlowly { ending: ending.clone(), handle_is_gone: gone.clone() };
            let drops = Arc::<AtomicUsize>::default();
            let result = LeavesOne(drops.clone());
            let handle = go(move || {
                LATE.with_borrow_mut(|late| *late = None);
                SLOW.set(Some(slow));
                result
            });
            while !ending.load(SeqCst) {
                thread::yield_now();
            }
            drop(handle);
            gone.store(true, SeqCst);
            while drops.load(SeqCst) == 0 {
                thread::yield_now();
            }
        }
    });
}
