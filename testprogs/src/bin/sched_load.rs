//! The scheduler under load, one kind of load for each run. Prints `key=value` lines.

use std::env;
use std::fs;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use std::time::{Duration, Instant};

use gosched::{go, run, runtime, thread};

fn main() {
    let arguments: Vec<_> = env::args().collect();
    let number = || arguments.get(2).and_then(|text| text.parse().ok()).expect("a number");
    match arguments.get(1).map_or("", String::as_str) {
        "at-once" => run(at_once),
        "spawns" => spawns(number()),
        "parked" => parked(number()),
        "ends" => ends(number()),
        "endless" => endless(),
        "timeouts" => timeouts(number()),
        "beside" => {
            let rounds = number();
            run(move || beside(rounds));
        }
        other => panic!("no load {other}"),
    }
}

fn counters() {
    let counted = runtime::counters();
    println!("steals={}", counted.steals);
    println!("next_steals={}", counted.next_steals);
    println!("overflows={}", counted.overflows);
    println!("direct_switches={}", counted.direct_switches);
    println!("runs_in_place={}", counted.runs_in_place);
    println!("fiber_waits={}", counted.fiber_waits);
    println!("timers={}", counted.timers);
    println!("without_processor={}", counted.undeclared_hand_offs);
}

/// How many goroutines are in user code now, and the most there ever were.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Computes for a while, counted.
fn compute(rounds: usize) {
    MOST.fetch_max(INSIDE.fetch_add(1, SeqCst) + 1, SeqCst);
    (0..rounds).for_each(|_| spin_loop());
    INSIDE.fetch_sub(1, SeqCst);
}

/// Where a machine is slow, or its CPUs are taken away, what a load is to show may take long to
/// happen. A load that shows it never fails when this is over.
const PATIENCE: Duration = Duration::from_secs(200);

/// One goroutine makes all the work, so that all others have to steal it. Goes on until some were
/// stolen and as many as may be were seen at once, at least for some rounds. (How many of many
/// processors' threads have a CPU at the same time is the kernel's business; two is enough after a
/// while.)
fn at_once() {
    const ROUNDS: usize = 20;
    let procs = runtime::gomaxprocs(0);
    let begun = Instant::now();
    for round in 0.. {
        let workers: Vec<_> = (0..300_usize).map(|i| go(move || work(i))).collect();
        workers.into_iter().for_each(|worker| worker.join().expect("it does not panic"));
        let seen = MOST.load(SeqCst);
        let is_shown = seen >= procs.min(2) && (procs == 1 || runtime::counters().steals > 0);
        let is_full = seen >= procs || begun.elapsed() > Duration::from_secs(30);
        if round >= ROUNDS && is_full && (is_shown || begun.elapsed() > PATIENCE) {
            break;
        }
    }
    println!("most={}", MOST.load(SeqCst));
    println!("inside={}", INSIDE.load(SeqCst));
    counters();
}

fn work(seed: usize) {
    for step in 0..10 {
        compute(50 + seed % 7 * 100);
        match (seed + step) % 4 {
            0 => thread::yield_now(),
            1 => runtime::gosched(),
            2 => thread::sleep(Duration::from_micros(50)),
            _ => go(|| compute(100)).join().expect("it does not panic"),
        }
    }
}

/// Runs `count` goroutines, spawned by goroutines and by plain threads, and counts for each of
/// them how often it ran.
fn spawns(count: usize) {
    const GOROUTINES: usize = 16;
    const THREADS: usize = 3;
    let ran: Arc<[AtomicU8]> = (0..count).map(|_| AtomicU8::new(0)).collect();
    let ended = Arc::new(AtomicUsize::new(0));
    let spawner = |index: usize| {
        let (ran, ended) = (ran.clone(), ended.clone());
        let share = (index..count).step_by(GOROUTINES + THREADS);
        move || spawn_share(share, &ran, &ended)
    };
    let threads: Vec<_> = (0..THREADS).map(|i| std::thread::spawn(spawner(i))).collect();
    let goroutines: Vec<_> = (0..GOROUTINES).map(|i| go(spawner(THREADS + i))).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
    goroutines.into_iter().for_each(|goroutine| goroutine.join().expect("it does not panic"));
    while ended.load(SeqCst) < count {
        thread::sleep(Duration::from_millis(1));
    }
    let wrong = ran.iter().filter(|times| times.load(SeqCst) != 1).count();
    println!("ended={}", ended.load(SeqCst));
    println!("wrong={wrong}");
    until_stolen();
    counters();
}

/// On a busy machine the queue of all can feed everybody, or all is done before a second thread has
/// a CPU, and nothing is stolen. So one goroutine makes work that lies in its own queue only, until
/// some was taken from there.
fn until_stolen() {
    let end = Instant::now() + PATIENCE;
    while runtime::gomaxprocs(0) > 1 && runtime::counters().steals == 0 && Instant::now() < end {
        go(|| {
            let workers: Vec<_> = (0..100).map(|_| go(|| compute(20_000))).collect();
            workers.into_iter().for_each(|worker| worker.join().expect("it does not panic"));
        })
        .join()
        .expect("it does not panic");
    }
}

/// Bursts that overflow a ring; every fourth goroutine is joined, the others are detached.
fn spawn_share(
    share: impl Iterator<Item = usize>,
    ran: &Arc<[AtomicU8]>,
    ended: &Arc<AtomicUsize>,
) {
    const BURST: usize = 700;
    let mut joined = Vec::new();
    for (at, index) in share.enumerate() {
        let (ran, ended) = (ran.clone(), ended.clone());
        let handle = go(move || {
            ran[index].fetch_add(1, Relaxed);
            ended.fetch_add(1, Relaxed);
            index
        });
        if at % 4 == 0 {
            joined.push((handle, index));
        }
        if at % BURST == BURST - 1 {
            join_all(&mut joined);
        }
    }
    join_all(&mut joined);
}

fn join_all(joined: &mut Vec<(thread::JoinHandle<usize>, usize)>) {
    for (handle, index) in joined.drain(..) {
        assert_eq!(handle.join().expect("it does not panic"), index);
    }
}

/// `count` goroutines parked at once, then woken and joined.
fn parked(count: usize) {
    let arrived = Arc::new(AtomicUsize::new(0));
    let goroutines: Vec<_> = (0..count)
        .map(|_| {
            let arrived = arrived.clone();
            go(move || {
                arrived.fetch_add(1, Relaxed);
                thread::park();
            })
        })
        .collect();
    while arrived.load(Relaxed) < count {
        thread::sleep(Duration::from_millis(1));
    }
    println!("parked={}", runtime::num_goroutine());
    println!("rss_kib={}", status("VmRSS:"));
    println!("threads={}", fs::read_dir("/proc/self/task").expect("readable").count());
    println!("handed_off={}", handed_off());
    println!("maps={}", fs::read_to_string("/proc/self/maps").expect("readable").lines().count());
    goroutines.iter().for_each(|goroutine| goroutine.thread().unpark());
    goroutines.into_iter().for_each(|goroutine| goroutine.join().expect("it does not panic"));
    // A joiner is woken shortly before its goroutine is counted as ended.
    while runtime::num_goroutine() > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    println!("left={}", runtime::num_goroutine());
}

/// Processors that went on without a thread that slept in the kernel, each perhaps to a new thread.
fn handed_off() -> u64 {
    let counted = runtime::counters();
    counted.declared_hand_offs + counted.undeclared_hand_offs
}

fn status(key: &str) -> usize {
    let text = fs::read_to_string("/proc/self/status").expect("readable");
    let line = text.lines().find(|line| line.starts_with(key)).expect("a field");
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
}

/// `count` goroutines that wait for each other in pairs and end.
fn ends(count: usize) {
    let sum: usize = run(move || {
        let goroutines: Vec<_> = (0..count)
            .map(|i| {
                go(move || {
                    thread::yield_now();
                    i
                })
            })
            .collect();
        goroutines.into_iter().map(|goroutine| goroutine.join().expect("it does not panic")).sum()
    });
    println!("sum={sum}");
    println!("threads={}", fs::read_dir("/proc/self/task").expect("readable").count());
    println!("handed_off={}", handed_off());
    until_stolen();
    counters();
}

/// Goroutines that yield for ever to the ring of the one processor, and what must run all the
/// same: one from the global queue, one injected by a plain thread, a timer.
fn endless() {
    static STOP: AtomicBool = AtomicBool::new(false);
    static YIELDS: AtomicU64 = AtomicU64::new(0);
    let yielders: Vec<_> = (0..10)
        .map(|_| {
            go(|| {
                while !STOP.load(Acquire) {
                    YIELDS.fetch_add(1, Relaxed);
                    thread::yield_now();
                }
            })
        })
        .collect();
    // A plain thread injects all of these.
    let global = go(|| (0..50).for_each(|_| runtime::gosched()));
    global.join().expect("it does not panic");
    println!("global=1");
    go(|| ()).join().expect("it does not panic");
    println!("injected=1");
    go(|| thread::sleep(Duration::from_millis(2))).join().expect("it does not panic");
    println!("timer=1");
    let parked = go(thread::park);
    parked.thread().unpark();
    parked.join().expect("it does not panic");
    println!("unparked=1");
    // Each needs a stack of its own, since none ends before the last has begun.
    const FRESH: usize = 3000;
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    let fresh: Vec<_> = (0..FRESH)
        .map(|_| {
            go(|| {
                BEGUN.fetch_add(1, Relaxed);
                while BEGUN.load(Relaxed) < FRESH {
                    thread::yield_now();
                }
            })
        })
        .collect();
    fresh.into_iter().for_each(|one| one.join().expect("it does not panic"));
    println!("fresh={}", BEGUN.load(Relaxed));
    println!("fiber_waits={}", runtime::counters().fiber_waits);
    STOP.store(true, Release);
    yielders.into_iter().for_each(|yielder| yielder.join().expect("it does not panic"));
    println!("yields={}", YIELDS.load(Relaxed));
}

/// A few goroutines whose time-outs of `us` microseconds are always due, and what must run all the
/// same on the one processor.
fn timeouts(us: usize) {
    static STOP: AtomicBool = AtomicBool::new(false);
    static TIMEOUTS: AtomicU64 = AtomicU64::new(0);
    let timeout = Duration::from_micros(us as u64);
    let yields = 4000;
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            go(move || {
                while !STOP.load(Acquire) {
                    TIMEOUTS.fetch_add(1, Relaxed);
                    thread::park_timeout(timeout);
                }
            })
        })
        .collect();
    let others: Vec<_> =
        (0..50).map(|_| go(move || (0..yields).for_each(|_| thread::yield_now()))).collect();
    others.into_iter().for_each(|other| other.join().expect("it does not panic"));
    println!("others=1");
    STOP.store(true, Release);
    waiters.into_iter().for_each(|waiter| waiter.join().expect("it does not panic"));
    println!("timeouts={}", TIMEOUTS.load(Relaxed));
}

/// Work beside a goroutine that computes until the work is done: it hangs unless each way of
/// becoming runnable wakes an idle processor. Two processors, nobody is stopped by signals.
fn beside(rounds: usize) {
    let ways: [(&str, Way); 6] = [
        ("spawn", |done| drop(go(setter(done)))),
        ("unpark", by_unpark),
        ("timer", by_timer),
        ("yield", by_yield),
        ("gosched", by_gosched),
        ("plain", by_plain_thread),
    ];
    for (name, way) in ways {
        for round in 0..rounds {
            // The other processor's machine is searching, going to sleep, or asleep.
            (0..round % 64 * 50).for_each(|_| spin_loop());
            let done = Arc::new(AtomicBool::new(false));
            way(&done);
            spin_until(&done);
        }
        println!("{name}={rounds}");
    }
    counters();
}

/// Makes a goroutine runnable that sets the flag.
type Way = fn(&Arc<AtomicBool>);

fn setter(done: &Arc<AtomicBool>) -> impl FnOnce() + Send + 'static {
    let done = done.clone();
    move || done.store(true, Release)
}

fn spin_until(done: &AtomicBool) {
    while !done.load(Acquire) {
        spin_loop();
    }
}

fn by_unpark(done: &Arc<AtomicBool>) {
    let (parks, parked) = (Arc::new(AtomicBool::new(false)), done.clone());
    let parking = parks.clone();
    let sleeper = go(move || {
        parking.store(true, Release);
        thread::park();
        parked.store(true, Release);
    });
    while !parks.load(Acquire) {
        thread::yield_now();
    }
    sleeper.thread().unpark();
}

fn by_timer(done: &Arc<AtomicBool>) {
    let (sleeps, slept) = (Arc::new(AtomicBool::new(false)), done.clone());
    let sleeping = sleeps.clone();
    drop(go(move || {
        sleeping.store(true, Release);
        thread::sleep(Duration::from_micros(30));
        slept.store(true, Release);
    }));
    while !sleeps.load(Acquire) {
        thread::yield_now();
    }
}

/// The other one computes on this processor, and this goroutine is what has to run beside it.
fn by_yield(done: &Arc<AtomicBool>) {
    let ran = Arc::new(AtomicBool::new(false));
    let (waits, tells) = (ran.clone(), done.clone());
    drop(go(move || {
        spin_until(&waits);
        tells.store(true, Release);
    }));
    thread::yield_now();
    ran.store(true, Release);
}

fn by_gosched(done: &Arc<AtomicBool>) {
    let ran = Arc::new(AtomicBool::new(false));
    let (waits, tells) = (ran.clone(), done.clone());
    drop(go(move || {
        spin_until(&waits);
        tells.store(true, Release);
    }));
    runtime::gosched();
    ran.store(true, Release);
}

fn by_plain_thread(done: &Arc<AtomicBool>) {
    static THREAD: std::sync::OnceLock<std::sync::mpsc::Sender<Arc<AtomicBool>>> =
        std::sync::OnceLock::new();
    let thread = THREAD.get_or_init(|| {
        let (sender, receiver) = std::sync::mpsc::channel::<Arc<AtomicBool>>();
        std::thread::spawn(move || receiver.iter().for_each(|done| drop(go(setter(&done)))));
        sender
    });
    thread.send(done.clone()).expect("it receives");
}
