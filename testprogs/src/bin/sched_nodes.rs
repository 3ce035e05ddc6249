//! Several NUMA nodes, made up by the tree that `GOSCHED=root=...` names.
//!
//! `steals`: one processor of each node makes all the work. `begins`: goroutines that ask for a node.
//! `unserved`: one asks for a node that has no processor. `pairs`: two goroutines that wake each
//! other. Prints what was counted.

use gosched::channel::bounded;
use gosched::sync::WaitGroup;
use gosched::thread::Builder;
use gosched::{go, run, runtime, thread};
use std::env;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn main() {
    let kind = env::args().nth(1).expect("what to do");
    run(move || match kind.as_str() {
        "steals" => steals(),
        "begins" => begins(),
        "unserved" => unserved(),
        "pairs" => pairs(),
        other => panic!("no kind {other}"),
    });
}

const NODES: usize = 4;
const STEALS: u64 = 300;
/// Some 100 us of a task's own, optimised or not.
const TURNS: u64 = if cfg!(debug_assertions) { 10_000 } else { 150_000 };
/// Tasks of a producer that have not ended.
const OUTSTANDING: u64 = 50;

fn steals() {
    let done = Arc::new(AtomicBool::new(false));
    let observer = observe(done.clone());
    let (made, ran, worst) =
        (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let producers: Vec<_> = (0..NODES)
        .map(|node| {
            let (done, made, ran, worst) = (done.clone(), made.clone(), ran.clone(), worst.clone());
            let produce = move || {
                let mine = Arc::new(AtomicU64::new(0));
                while !done.load(SeqCst) {
                    if mine.load(SeqCst) >= OUTSTANDING {
                        thread::yield_now();
                        continue;
                    }
                    mine.fetch_add(1, SeqCst);
                    made.fetch_add(1, SeqCst);
                    let (mine, ran, worst) = (mine.clone(), ran.clone(), worst.clone());
                    let begin = Instant::now();
                    go(move || {
                        worst.fetch_max(begin.elapsed().as_micros() as u64, SeqCst);
                        black_box((0..TURNS).map(black_box).sum::<u64>());
                        ran.fetch_add(1, SeqCst);
                        mine.fetch_sub(1, SeqCst);
                    });
                }
            };
            Builder::new().node(node).spawn(produce).expect("a stack")
        })
        .collect();
    // It goes on until there is something to compare.
    loop {
        let counters = runtime::counters();
        if counters.steals + counters.next_steals >= STEALS {
            break;
        }
        thread::yield_now();
    }
    done.store(true, SeqCst);
    producers.into_iter().for_each(|one| one.join().expect("it does not panic"));
    while ran.load(SeqCst) < made.load(SeqCst) {
        thread::yield_now();
    }
    let counters = runtime::counters();
    println!("steals={}", counters.steals + counters.next_steals);
    println!("far={}", counters.far_steals);
    println!("lost={}", made.load(SeqCst) - ran.load(SeqCst));
    println!("worst_us={}", worst.load(SeqCst));
    println!("stalled_us={}", observer.join().expect("it does not panic"));
}

/// For how long at most the system let a thread wait that wanted to run, in microseconds: goroutines
/// wait that long as well, whatever the scheduler does.
fn observe(done: Arc<AtomicBool>) -> std::thread::JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut worst = 0;
        while !done.load(SeqCst) {
            let begin = Instant::now();
            std::thread::sleep(Duration::from_millis(1));
            worst = worst.max(begin.elapsed().as_micros() as u64);
        }
        worst
    })
}

fn begins() {
    let group = WaitGroup::new();
    let (at_home, all) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    for i in 0..1_000 {
        let (end, home, begun) = (group.clone(), at_home.clone(), all.clone());
        group.add(1);
        let begin = move || {
            home.fetch_add(u64::from(runtime::current_node() == Some(i % NODES)), SeqCst);
            begun.fetch_add(1, SeqCst);
            end.done();
        };
        Builder::new().node(i % NODES).spawn(begin).expect("a stack");
        // Everybody is idle but the caller.
        while all.load(SeqCst) <= i as u64 {
            thread::sleep(Duration::from_micros(50));
        }
    }
    group.wait();
    println!("all={}", all.load(SeqCst));
    println!("at_home={}", at_home.load(SeqCst));
    // There is no such node.
    Builder::new().node(99).spawn(|| ()).expect("a stack").join().expect("it does not panic");
    // From a plain thread.
    let outside = std::thread::spawn(|| {
        let spawned: Vec<_> =
            (0..NODES).map(|node| Builder::new().node(node).spawn(move || node)).collect();
        spawned.into_iter().map(|one| one.expect("a stack").join().expect("it ends")).sum::<usize>()
    });
    println!("outside={}", gosched::blocking(|| outside.join().expect("it ends")));
    // With one processor everything runs on it.
    runtime::gomaxprocs(1);
    let spawned: Vec<_> = (0..100).map(|i| Builder::new().node(i % NODES).spawn(|| 1)).collect();
    let sum: u64 = spawned
        .into_iter()
        .map(|one| one.expect("a stack").join().expect("it does not panic"))
        .sum();
    println!("on_one={sum}");
}

/// Both processors are of the first node, and never idle.
fn unserved() {
    runtime::gomaxprocs(2);
    let done = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let done = done.clone();
            go(move || {
                let mut rounds = 0_u64;
                while !done.load(SeqCst) {
                    rounds += 1;
                    thread::yield_now();
                }
                rounds
            })
        })
        .collect();
    let mut begun = 0;
    for i in 0..100 {
        let (sender, receiver) = bounded(1);
        let begin = move || sender.send(()).expect("somebody waits");
        drop(Builder::new().node(1 + i % (NODES - 1)).spawn(begin).expect("a stack"));
        receiver.recv().expect("it is there");
        begun += 1;
    }
    done.store(true, SeqCst);
    let rounds: u64 = busy.into_iter().map(|one| one.join().expect("it does not panic")).sum();
    println!("begun={begun}");
    println!("rounds={rounds}");
}

const ROUNDS: usize = 200_000;

fn pairs() {
    let (there, back) = (bounded::<()>(0), bounded::<()>(0));
    let partner = go(move || while there.1.recv().is_ok() && back.0.send(()).is_ok() {});
    let before = runtime::counters();
    for _ in 0..ROUNDS {
        there.0.send(()).expect("it is there");
        back.1.recv().expect("it is there");
    }
    let after = runtime::counters();
    drop((there.0, back.1));
    partner.join().expect("it does not panic");
    let switches = |c: &runtime::Counters| c.direct_switches + c.scheduled;
    println!("switches={}", switches(&after) - switches(&before));
    let stolen = |c: &runtime::Counters| c.steals + c.next_steals;
    println!("stolen={}", stolen(&after) - stolen(&before));
}
