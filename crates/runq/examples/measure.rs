//! Measures the queues: `cargo run -p gosched-runq --release --example measure`.
//!
//! Prints nanoseconds an operation, the best of several rounds, so that a busy machine disturbs
//! little. The rows with a second thread depend on how the two are placed.

use std::{
    hint::{black_box, spin_loop},
    io::{self, Write},
    ptr::NonNull,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use gosched_runq::{Global, HALF, Injector, Link, Linked, Overflow, Owner, Ring, SLOTS, Token};

/// Something to queue, on cache lines of its own as a goroutine is.
#[repr(align(128))]
#[derive(Default)]
struct Node {
    link: Link,
}

/// A token of a [`Node`] that is never freed.
#[derive(Clone, Copy)]
struct Task(&'static Node);

// SAFETY: the pointer is that of a `&'static Node`, and comes back as one.
unsafe impl Token for Task {
    fn into_ptr(self) -> NonNull<()> {
        NonNull::from(self.0).cast()
    }

    unsafe fn from_ptr(ptr: NonNull<()>) -> Task {
        // SAFETY: by the trait's contract the pointer came from `into_ptr`.
        Task(unsafe { ptr.cast().as_ref() })
    }
}

// SAFETY: each node has a link of its own.
unsafe impl Linked for Task {
    fn link(&self) -> &Link {
        &self.0.link
    }
}

/// What the measurements work with: two rings and enough tasks to fill one.
struct Bench {
    tasks: Vec<Task>,
    ring: Ring<Task>,
    other: Ring<Task>,
}

fn main() -> io::Result<()> {
    let tasks = (0..SLOTS).map(|_| Task(Box::leak(Box::default()))).collect();
    let bench = Bench { tasks, ring: Ring::new(), other: Ring::new() };
    let rows = [
        ("push_back + pop", bench.push_back_pop()),
        ("push_next + pop", bench.push_next_pop()),
        ("push_next that displaces + push_back + pop", bench.displace()),
        ("push_front + pop", bench.push_front_pop()),
        ("is_empty of an empty ring", bench.is_empty()),
        ("steal of 128, each steal, on one thread", bench.steal()),
        ("steal of 128, each steal, from another thread", bench.steal_from_another_thread()),
        ("overflow of 129 + push_back_batch of 128, each token", bench.overflow()),
        ("global push_back + pop_front", bench.global()),
        ("injector push + take_all", bench.inject(1)),
        ("injector push x 64 + take_all, each token", bench.inject(64)),
        ("push_back + pop while another thread asks is_empty", bench.push_back_pop_observed()),
    ];
    let mut out = io::stdout().lock();
    rows.iter().try_for_each(|(what, ns)| writeln!(out, "{ns:8.2} ns  {what}"))
}

/// Nanoseconds for each of the `count` operations that one call of `run` does, the best of many
/// rounds.
fn best(count: usize, run: impl FnMut()) -> f64 {
    rounds(count, run)[0]
}

/// What each operation took in each of many rounds, sorted.
fn rounds(count: usize, mut run: impl FnMut()) -> [f64; 50] {
    const CALLS: usize = 1000;
    let mut rounds = [(); 50].map(|()| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| run());
        start.elapsed().as_nanos() as f64 / (CALLS * count) as f64
    });
    rounds.sort_unstable_by(f64::total_cmp);
    rounds
}

/// Nanoseconds of one call of `run`, which is too long or too rare to be called in a row; `prepare`
/// comes before each. The median, less what the clock takes.
fn median_of_single(mut prepare: impl FnMut(), mut run: impl FnMut()) -> f64 {
    let mut time = |run: &mut dyn FnMut()| {
        let mut times = [(); 4000].map(|()| {
            prepare();
            let start = Instant::now();
            run();
            start.elapsed().as_nanos() as f64
        });
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    };
    time(&mut run) - time(&mut || ())
}

impl Bench {
    /// The owners of both rings.
    fn owners(&self) -> (Owner<'_, Task>, Owner<'_, Task>) {
        // SAFETY: one measurement at a time uses the ring.
        let owner = unsafe { self.ring.owner() };
        // SAFETY: as above.
        let other = unsafe { self.other.owner() };
        (owner, other)
    }

    fn push_back_pop(&self) -> f64 {
        best(SLOTS, || self.push_and_pop_each())
    }

    fn push_and_pop_each(&self) {
        let (mut owner, _) = self.owners();
        for &task in &self.tasks {
            owner.push_back(task).expect("there is room");
            black_box(owner.pop());
        }
    }

    fn push_next_pop(&self) -> f64 {
        let (mut owner, _) = self.owners();
        best(SLOTS, || {
            for &task in &self.tasks {
                assert!(owner.push_next(task).is_none());
                black_box(owner.pop());
            }
        })
    }

    fn displace(&self) -> f64 {
        let (mut owner, _) = self.owners();
        best(SLOTS, || {
            for &task in &self.tasks {
                if let Some(displaced) = owner.push_next(task) {
                    owner.push_back(displaced).expect("there is room");
                }
            }
            while black_box(owner.pop()).is_some() {}
        })
    }

    fn push_front_pop(&self) -> f64 {
        let (mut owner, _) = self.owners();
        best(SLOTS, || {
            for &task in &self.tasks {
                owner.push_front(task).expect("there is room");
                black_box(owner.pop());
            }
        })
    }

    fn is_empty(&self) -> f64 {
        best(1, || assert!(black_box(&self.ring).is_empty()))
    }

    fn push_back_pop_observed(&self) -> f64 {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // Relaxed: only to end the thread.
                while !over.load(Ordering::Relaxed) {
                    black_box(self.ring.is_empty());
                    spin_loop();
                }
            });
            // The median: the best round is one in which the other thread was not running.
            let cost = rounds(SLOTS, || self.push_and_pop_each())[25];
            over.store(true, Ordering::Relaxed);
            cost
        })
    }

    /// Makes `ring` full and `other` empty.
    fn refill(&self) {
        let (mut owner, mut other) = self.owners();
        owner.drain().for_each(drop);
        other.drain().for_each(drop);
        owner.push_back_batch(&mut self.tasks.iter().copied(), SLOTS);
    }

    fn steal(&self) -> f64 {
        let (_, mut thief) = self.owners();
        let steal = || assert!(black_box(self.ring.steal_half(&mut thief)).is_some());
        let cost = median_of_single(|| self.refill(), steal);
        self.owners().0.drain().for_each(drop);
        cost
    }

    /// As above, with another thread that has just filled the ring.
    fn steal_from_another_thread(&self) -> f64 {
        let (wanted, over) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                // ORDERING: both flags hand the ring over and back.
                while !over.load(Ordering::Acquire) {
                    if wanted.load(Ordering::Acquire) {
                        self.refill();
                        wanted.store(false, Ordering::Release);
                    }
                    spin_loop();
                }
            });
            let refill = || {
                wanted.store(true, Ordering::Release);
                while wanted.load(Ordering::Acquire) {
                    spin_loop();
                }
            };
            let (_, mut thief) = self.owners();
            let steal = || assert!(black_box(self.ring.steal_half(&mut thief)).is_some());
            let cost = median_of_single(refill, steal);
            over.store(true, Ordering::Release);
            cost
        })
    }

    /// The ring stays full: half of it goes out with the spare task, and comes back without it.
    fn overflow(&self) -> f64 {
        self.refill();
        let (mut owner, _) = self.owners();
        let mut spare = Task(Box::leak(Box::default()));
        let cost = best(HALF + 1, || {
            let Err(Overflow(mut batch)) = owner.push_back(spare) else { unreachable!("full") };
            owner.push_back_batch(&mut batch, HALF);
            spare = batch.next().expect("one more than half");
        });
        owner.drain().for_each(drop);
        cost
    }

    fn global(&self) -> f64 {
        let global = Global::new();
        best(SLOTS, || {
            for &task in &self.tasks {
                global.push_back(task);
                black_box(global.pop_front());
            }
        })
    }

    fn inject(&self, count: usize) -> f64 {
        let injector = Injector::new();
        best(count, || {
            self.tasks[..count].iter().for_each(|&task| injector.push(task));
            injector.take_all().for_each(|task| {
                black_box(task);
            });
        })
    }
}
