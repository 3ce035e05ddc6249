//! `after_func`: each setting runs once or is stopped, from goroutines and from plain threads.

use gosched::time::{AfterFunc, after_func};
use gosched::{go, run};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const SOON: Duration = Duration::from_micros(100);
const HOUR: Duration = Duration::from_secs(3600);

/// Runs `f` on a plain thread, then in a goroutine.
fn on_both(f: fn()) {
    f();
    run(f);
}

/// An alarm that says which goroutine it ran in.
fn telling(d: Duration) -> (AfterFunc, Receiver<Option<u64>>) {
    let (tell, told) = channel();
    let alarm = after_func(d, move || {
        let _ = tell.send(gosched::thread::current().goroutine_id());
    });
    (alarm, told)
}

#[test]
fn it_runs_in_a_goroutine_of_its_own_each_time() {
    on_both(|| {
        let (alarm, told) = telling(SOON);
        let first = told.recv().unwrap();
        assert!(!alarm.reset(SOON));
        let second = told.recv().unwrap();
        assert!(first.is_some() && second.is_some() && first != second);
        assert_ne!(first, gosched::thread::current().goroutine_id());
    });
}

#[test]
fn stop_and_reset_say_whether_it_was_to_run() {
    on_both(|| {
        let (alarm, told) = telling(HOUR);
        assert!(alarm.stop());
        assert!(!alarm.stop());
        assert!(!alarm.reset(HOUR));
        assert!(alarm.reset(HOUR));
        assert!(alarm.reset(SOON));
        told.recv().unwrap();
        assert!(!alarm.stop());
        assert!(!alarm.reset(Duration::MAX));
        assert!(alarm.stop());
        assert!(told.try_recv().is_err());
    });
}

#[test]
fn a_time_beyond_the_clock_never_comes() {
    on_both(|| {
        let (alarm, told) = telling(Duration::MAX);
        assert!(alarm.reset(Duration::from_nanos(u64::MAX)));
        assert!(alarm.stop());
        drop(alarm);
        // The function is gone, and was not called.
        assert!(told.recv().is_err());
    });
}

#[test]
fn dropping_the_handle_cancels_nothing_and_the_function_goes_after_its_run() {
    on_both(|| {
        let (alarm, told) = telling(SOON);
        drop(alarm);
        assert!(told.recv().unwrap().is_some());
        assert!(told.recv().is_err());
    });
}

#[test]
fn the_function_goes_with_a_stopped_handle() {
    on_both(|| {
        let (alarm, told) = telling(HOUR);
        alarm.stop();
        drop(alarm);
        assert!(told.recv().is_err());
    });
}

#[test]
fn a_panic_is_that_goroutines() {
    on_both(|| {
        let (tell, told) = channel();
        let mut runs = 0;
        let alarm = after_func(SOON, move || {
            runs += 1;
            tell.send(runs).unwrap();
            assert!(runs != 1, "the first run of an alarm panics");
        });
        assert_eq!(told.recv(), Ok(1));
        alarm.reset(SOON);
        assert_eq!(told.recv(), Ok(2));
        drop(alarm);
        assert!(told.recv().is_err());
    });
}

/// The last who may call the function drops it, in user context, where thread-locals work.
#[test]
fn the_functions_drop_may_use_thread_locals_and_timers() {
    thread_local! {
        static DROPS: Cell<usize> = const { Cell::new(0) };
    }
    struct Drops(std::sync::mpsc::Sender<usize>);
    impl Drop for Drops {
        fn drop(&mut self) {
            DROPS.set(DROPS.get() + 1);
            drop(after_func(SOON, || {}));
            self.0.send(DROPS.get()).unwrap();
        }
    }
    // On a plain thread the goroutine that enters the alarm into a heap may be the last one.
    run(|| {
        let ((tell, told), (go_on, goes_on)) = (channel(), channel());
        let drops = Drops(tell);
        let alarm = after_func(SOON, move || {
            let _ = &drops;
            DROPS.set(10);
            goes_on.recv().unwrap();
        });
        drop(alarm);
        go_on.send(()).unwrap();
        assert_eq!(told.recv(), Ok(11));
        assert!(told.recv().is_err());
    });
}

/// Firings that come while the function runs wait for its end, and none is lost.
#[test]
fn it_runs_once_at_a_time() {
    run(|| {
        let runs_now = Arc::new(AtomicUsize::new(0));
        let ((tell, told), (go_on, goes_on)) = (channel(), channel());
        let alarm = after_func(SOON, {
            let runs_now = runs_now.clone();
            move || {
                assert_eq!(runs_now.fetch_add(1, SeqCst), 0);
                tell.send(()).unwrap();
                goes_on.recv().unwrap();
                runs_now.fetch_sub(1, SeqCst);
            }
        });
        told.recv().unwrap();
        let mut fired = 0;
        while fired < 3 {
            // Not undone by the next one: it has fired.
            fired += usize::from(!alarm.reset(Duration::ZERO));
            gosched::thread::yield_now();
        }
        for _ in 0..4 {
            go_on.send(()).unwrap();
        }
        (0..3).for_each(|_| told.recv().unwrap());
        drop(alarm);
        assert!(told.recv().is_err());
    });
}

/// Settings that took effect, and settings that were undone.
#[derive(Default)]
struct Tally {
    set: AtomicUsize,
    undone: AtomicUsize,
    too_late: AtomicUsize,
}

impl Tally {
    fn reset(&self, alarm: &AfterFunc, d: Duration) {
        self.set.fetch_add(1, SeqCst);
        self.count(alarm.reset(d));
    }

    fn count(&self, undone: bool) {
        if undone { &self.undone } else { &self.too_late }.fetch_add(1, SeqCst);
    }
}

/// Setters and stoppers on goroutines and threads against the timers: each setting ran or was undone.
#[test]
fn every_setting_runs_once_or_is_undone() {
    const ROUNDS: usize = 3000;
    let (tally, runs) = (Arc::new(Tally::default()), Arc::new(AtomicUsize::new(0)));
    let dropped = Arc::new(AtomicBool::new(false));
    struct SetOnDrop(Arc<AtomicBool>);
    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            assert!(!self.0.swap(true, SeqCst), "the function was dropped twice");
        }
    }
    let alarm = Arc::new(after_func(HOUR, {
        let (runs, dropped) = (runs.clone(), SetOnDrop(dropped.clone()));
        move || {
            let _ = &dropped;
            runs.fetch_add(1, SeqCst);
        }
    }));
    tally.set.fetch_add(1, SeqCst);
    let act = |seed: usize| {
        let (tally, alarm) = (tally.clone(), alarm.clone());
        move || {
            for round in 0..ROUNDS {
                match (round + seed) % 4 {
                    0 => tally.count(alarm.stop()),
                    1 => tally.reset(&alarm, HOUR),
                    other => tally.reset(&alarm, Duration::from_micros(other as u64 * 5)),
                }
                // Let it come due sometimes.
                (0..round % 50 * 20).for_each(|_| std::hint::spin_loop());
                if round % 8 == 0 {
                    gosched::thread::yield_now();
                }
            }
        }
    };
    let goroutines: Vec<_> = (0..2).map(|seed| go(act(seed))).collect();
    let threads: Vec<_> = (2..4).map(|seed| std::thread::spawn(act(seed))).collect();
    goroutines.into_iter().for_each(|g| g.join().unwrap());
    threads.into_iter().for_each(|t| t.join().unwrap());
    tally.count(alarm.stop());
    let [set, undone, too_late] =
        [&tally.set, &tally.undone, &tally.too_late].map(|count| count.load(SeqCst));
    drop(alarm);
    // The last run may still be under way; its end drops the function.
    while !dropped.load(SeqCst) {
        gosched::thread::sleep(SOON);
    }
    assert_eq!(runs.load(SeqCst), set - undone, "set {set}, undone {undone}");
    assert!(undone > ROUNDS / 10 && too_late > ROUNDS / 10, "{undone} undone, {too_late} too late");
}

/// A panic while the handle is dropped, or a function that panics in its drop, ends nothing else.
#[test]
fn a_handle_that_is_dropped_while_unwinding() {
    run(|| {
        let (tell, told) = channel();
        let unwound = catch_unwind(AssertUnwindSafe(move || {
            let alarm = after_func(HOUR, move || tell.send(()).unwrap());
            assert!(!alarm.stop(), "unwinds with a stopped handle");
        }));
        assert!(unwound.is_err());
        assert!(told.recv().is_err());
    });
}
