//! GOMAXPROCS and what it follows from, in a process of its own.
//!
//! `follow FILE=TEXT=PROCS...`: writes each text into its file, and waits until GOMAXPROCS is that,
//! while goroutines yield, sleep, spawn and compute. `affinity`: the same with the process's own
//! affinity mask. `stays FILE=TEXT...`: writes, and waits until the monitor has looked twice.
//! `calls`: what the functions return.

use gosched::{go, run, runtime, thread};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use std::{env, fs};

fn main() {
    let mut arguments = env::args().skip(1);
    let kind = arguments.next().expect("what to do");
    let steps: Vec<String> = arguments.collect();
    run(move || match kind.as_str() {
        "follow" => under_load(|| steps.iter().for_each(|step| follow(step))),
        "affinity" => under_load(affinity),
        "stays" => stays(&steps),
        "calls" => calls(),
        other => panic!("no kind {other}"),
    });
}

/// Runs `act` beside goroutines that do all that could be lost; then each of them must be there.
fn under_load(act: impl FnOnce()) {
    let done = Arc::new(AtomicBool::new(false));
    let (fired, armed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let workers: Vec<_> = (0..40)
        .map(|i| {
            let (done, fired, armed) = (done.clone(), fired.clone(), armed.clone());
            go(move || {
                let mut n = i;
                while !done.load(SeqCst) {
                    match n % 4 {
                        0 => thread::yield_now(),
                        1 => thread::sleep(Duration::from_micros(200)),
                        2 => go(|| ()).join().expect("it does not panic"),
                        _ => drop(black_box((0..20_000_u64).map(black_box).sum::<u64>())),
                    }
                    armed.fetch_add(1, SeqCst);
                    let fired = fired.clone();
                    gosched::time::after_func(Duration::from_millis(n % 7), move || {
                        fired.fetch_add(1, SeqCst);
                    });
                    n += 1;
                }
            })
        })
        .collect();
    act();
    done.store(true, SeqCst);
    let count = workers.len();
    workers.into_iter().for_each(|worker| worker.join().expect("it does not panic"));
    println!("workers={count}");
    // Each timer comes; a lost one would let this wait for ever.
    while fired.load(SeqCst) < armed.load(SeqCst) {
        thread::sleep(Duration::from_millis(1));
    }
    println!("timers_lost={}", armed.load(SeqCst) - fired.load(SeqCst));
    while runtime::num_goroutine() > 1 {
        thread::sleep(Duration::from_millis(1));
    }
    println!("goroutines={}", runtime::num_goroutine());
    println!("updates={}", runtime::counters().procs_updates);
}

fn write(step: &str) -> Option<usize> {
    let mut parts = step.splitn(3, '=');
    let (file, text) = (parts.next().expect("a file"), parts.next().expect("a text"));
    fs::write(file, text).expect("it can be written");
    parts.next().map(|procs| procs.parse().expect("a number"))
}

fn follow(step: &str) {
    let expected = write(step).expect("a number of processors");
    wait_for(expected);
}

fn wait_for(expected: usize) {
    let begin = Instant::now();
    while runtime::gomaxprocs(0) != expected {
        thread::sleep(Duration::from_millis(1));
    }
    let parallelism = thread::available_parallelism().expect("it never fails");
    assert_eq!(parallelism.get(), expected);
    println!("GOMAXPROCS {expected} after {} ms", begin.elapsed().as_millis());
}

/// The mask of every thread, as `taskset --all-tasks` sets it.
fn affinity() {
    let before = mask();
    // SAFETY: an all-zero set is a valid, empty one.
    let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let first = (0..libc::CPU_SETSIZE as usize)
        // SAFETY: looks at a bit of the set.
        .find(|cpu| unsafe { libc::CPU_ISSET(*cpu, &before) })
        .expect("a CPU");
    // SAFETY: sets a bit of the set.
    unsafe { libc::CPU_SET(first, &mut one) };
    let cpus = runtime::gomaxprocs(0);
    for (mask, procs) in [(&one, 1), (&before, cpus)] {
        while runtime::gomaxprocs(0) != procs {
            // Again for threads that were made meanwhile.
            set_mask(mask);
            thread::sleep(Duration::from_millis(10));
        }
        println!("GOMAXPROCS {procs}");
    }
}

fn mask() -> libc::cpu_set_t {
    // SAFETY: an all-zero set is a valid, empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes the set, which is ours.
    assert_eq!(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) }, 0);
    set
}

fn set_mask(set: &libc::cpu_set_t) {
    for task in fs::read_dir("/proc/self/task").expect("readable").flatten() {
        let tid = task.file_name().to_str().and_then(|name| name.parse().ok()).expect("a number");
        // SAFETY: the kernel reads the set. The thread may have ended.
        unsafe { libc::sched_setaffinity(tid, size_of_val(set), set) };
    }
}

/// The number stays whatever is written. The monitor looks once a second.
fn stays(steps: &[String]) {
    let before = runtime::gomaxprocs(0);
    for step in steps {
        let _ = write(step);
    }
    for _ in 0..25 {
        thread::sleep(Duration::from_millis(100));
        assert_eq!(runtime::gomaxprocs(0), before);
    }
    println!("procs={before}");
    println!("updates={}", runtime::counters().procs_updates);
}

fn calls() {
    println!("default={}", runtime::gomaxprocs(0));
    println!("former={}", runtime::gomaxprocs(7));
    {
        let _outer = runtime::scoped_gomaxprocs(3);
        println!("outer={}", runtime::gomaxprocs(0));
        {
            let _inner = runtime::scoped_gomaxprocs(0);
            println!("inner={}", runtime::gomaxprocs(0));
        }
        println!("outer_again={}", runtime::gomaxprocs(0));
    }
    println!("undone={}", runtime::gomaxprocs(0));
    // What processors out of service have counted still counts.
    let parked: Vec<_> = (0..200).map(|_| go(thread::park)).collect();
    (0..200).for_each(|_| thread::yield_now());
    runtime::gomaxprocs(1);
    println!("goroutines={}", runtime::num_goroutine());
    parked.iter().for_each(|one| one.thread().unpark());
    parked.into_iter().for_each(|one| one.join().expect("it does not panic"));
    runtime::set_default_gomaxprocs();
    println!("default_again={}", runtime::gomaxprocs(0));
}
