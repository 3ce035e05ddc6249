//! Loops that signals don't stop: with safepoints they let others run, without they don't.

use crate::child::in_child;
use gosched::{go, preemptible, run, runtime, thread};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

static OTHERS: AtomicU64 = AtomicU64::new(0);

/// CPU time that the calling thread has used, in milliseconds.
fn cpu_ms() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec, which is ours.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Long against the slice of 1 ms.
const LONG_MS: u64 = 300;

/// Computes until the other goroutine has had three turns, or for so many ms.
struct Hog {
    until: u64,
}

impl Hog {
    fn for_a_while() -> Hog {
        Hog { until: cpu_ms() + LONG_MS }
    }

    /// The monitor, which asks for the turns, may have to wait for a CPU.
    fn for_as_long_as_it_takes() -> Hog {
        Hog { until: u64::MAX }
    }

    fn is_over(&self) -> bool {
        cpu_ms() >= self.until || OTHERS.load(SeqCst) >= 3
    }

    fn without(&self) {
        while !self.is_over() {}
    }

    #[preemptible]
    fn in_while(&self) {
        while !self.is_over() {}
    }

    #[preemptible]
    fn in_loop(&self) {
        loop {
            if self.is_over() {
                break;
            }
        }
    }

    #[preemptible]
    fn in_for(&self) {
        for _ in 0_u64.. {
            if self.is_over() {
                return;
            }
        }
    }

    /// Calls a marked function again and again.
    fn at_entry(&self) {
        #[preemptible]
        fn marked(hog: &Hog) -> bool {
            hog.is_over()
        }
        while !marked(self) {}
    }

    #[preemptible]
    fn in_a_closure(&self) {
        let unmarked = || while !self.is_over() {};
        unmarked();
    }
}

/// How often another goroutine has had a turn while `f` ran, with one processor and no signals.
/// Measured again if the processor was taken from the thread because a page kept it waiting.
fn turns_of_others_during(f: fn(&Hog), hog: fn() -> Hog) -> u64 {
    loop {
        let before = runtime::counters().undeclared_hand_offs;
        let turns = turns_of_others_once(f, hog);
        if runtime::counters().undeclared_hand_offs == before {
            return turns;
        }
    }
}

fn turns_of_others_once(f: fn(&Hog), hog: fn() -> Hog) -> u64 {
    run(move || {
        OTHERS.store(0, SeqCst);
        let other = go(|| {
            for _ in 0..3 {
                OTHERS.fetch_add(1, SeqCst);
                thread::yield_now();
            }
        });
        f(&hog());
        let turns = OTHERS.load(SeqCst);
        other.join().unwrap();
        turns
    })
}

#[test]
fn marked_loops_let_others_run_and_unmarked_ones_do_not() {
    in_child(
        "procs=1,slice=1ms,asyncpreemptoff=1",
        "safepoints::marked_loops_let_others_run_and_unmarked_ones_do_not",
        || {
            for marked in [Hog::in_while, Hog::in_loop, Hog::in_for, Hog::at_entry] {
                assert!(turns_of_others_during(marked, Hog::for_as_long_as_it_takes) > 0);
            }
            assert_eq!(turns_of_others_during(Hog::without, Hog::for_a_while), 0);
            assert_eq!(turns_of_others_during(Hog::in_a_closure, Hog::for_a_while), 0);
            assert_eq!(runtime::preemptions(), runtime::Preemptions::default());
        },
    );
}

/// A runtime operation is a safepoint as well.
#[test]
fn operations_of_the_runtime_let_others_run() {
    in_child(
        "procs=1,slice=1ms,asyncpreemptoff=1",
        "safepoints::operations_of_the_runtime_let_others_run",
        || {
            fn operate(hog: &Hog) {
                let (tx, rx) = gosched::channel::bounded(1);
                while !hog.is_over() {
                    tx.send(7).unwrap();
                    assert_eq!(rx.recv(), Ok(7));
                }
            }
            assert!(turns_of_others_during(operate, Hog::for_as_long_as_it_takes) > 0);
        },
    );
}

/// Requests come and go; none is lost, and none stays for ever.
#[test]
fn safepoints_and_signals_together() {
    in_child("procs=2,slice=100us", "safepoints::safepoints_and_signals_together", || {
        #[preemptible]
        fn count(n: u64) -> u64 {
            let mut sum = 0;
            for i in 0..n {
                sum += i;
            }
            sum
        }
        run(|| {
            let hogs: Vec<_> = (0..8)
                .map(|_| {
                    go(|| {
                        while runtime::preemptions().flagged < 50 || OTHERS.load(SeqCst) < 50 {
                            assert_eq!(count(10_000), 49_995_000);
                        }
                    })
                })
                .collect();
            while OTHERS.fetch_add(1, SeqCst) < 50 {
                thread::sleep(Duration::from_micros(500));
            }
            hogs.into_iter().for_each(|h| h.join().unwrap());
        });
    });
}

/// On a plain thread, and before the runtime has started, it does nothing.
#[test]
fn plain_threads_pass_safepoints() {
    in_child("", "safepoints::plain_threads_pass_safepoints", || {
        runtime::safepoint();
        run(|| ());
        runtime::safepoint();
        assert!(!runtime::is_goroutine());
    });
}
