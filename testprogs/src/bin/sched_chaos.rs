//! Everything at once, at random: `sched_chaos SEED MILLISECONDS`, and longer until every act was
//! done, which may take a while on a machine whose CPUs are taken away.
//!
//! Each act checks what it got. Prints how often each kind of act was done. With `CHAOS_TRACE=FILE`
//! all of it is traced.
//!
//! `sched_chaos orders ROUNDS`: in how many orders four goroutines ran, and how often one that never
//! waits was broken in on, on one processor.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::env;
use std::fs::File;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::time::{Duration, Instant};

use gosched::thread::{self, Builder};
use gosched::{go, runtime, trace};

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 33) % bound
    }

    /// Another one, for a goroutine.
    fn fork(&mut self) -> Random {
        Random(self.next() | 1)
    }
}

/// What a goroutine may do, at this depth of goroutines that began each other.
type Act = fn(&mut Random, usize);

const ACTS: [(&str, Act); 12] = [
    ("spawn_join", spawn_join),
    ("spawn_detached", spawn_detached),
    ("yield", |random, _| (0..random.below(20)).for_each(|_| thread::yield_now())),
    ("gosched", |random, _| (0..random.below(5)).for_each(|_| runtime::gosched())),
    ("sleep", sleep),
    ("park", park),
    ("park_timeout", park_timeout),
    ("scope", scope),
    ("panic", caught_panic),
    ("plain_thread", plain_thread),
    ("deep", |random, _| assert_eq!(deep(random.below(60)), 0)),
    ("compute", compute),
];

static DONE: [AtomicU64; ACTS.len()] = [const { AtomicU64::new(0) }; ACTS.len()];
static STOP: AtomicBool = AtomicBool::new(false);
/// Detached goroutines that have not ended.
static DETACHED: AtomicUsize = AtomicUsize::new(0);

fn main() {
    if env::args().nth(1).is_some_and(|first| first == "orders") {
        let rounds = env::args().nth(2).and_then(|text| text.parse().ok()).expect("rounds");
        return gosched::run(move || orders(rounds));
    }
    let mut numbers = env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let seed = numbers.next().expect("a seed");
    let milliseconds = numbers.next().expect("milliseconds");
    println!("seed={seed}");
    // The runtime puts its own hook before ours at its start.
    go(|| ()).join().expect("it does not panic");
    panic::set_hook(Box::new(|_| ()));
    let file = env::var_os("CHAOS_TRACE").map(|path| File::create(path).expect("a file"));
    let is_traced = file.is_some();
    if let Some(file) = file {
        trace::start(file).expect("no other trace is on");
    }
    std::thread::spawn(move || give_up_after(Duration::from_millis(milliseconds) + PATIENCE));
    let mut random = Random(seed.wrapping_mul(2) + 1);
    let actors: Vec<_> = (0..30).map(|_| random.fork()).collect();
    let goroutines: Vec<_> = actors.into_iter().map(|actor| go(move || act(actor))).collect();
    let mut plain = random.fork();
    let thread = std::thread::spawn(move || {
        while !STOP.load(Relaxed) {
            spawn_join(&mut plain, 0);
            park(&mut plain, 0);
        }
    });
    std::thread::sleep(Duration::from_millis(milliseconds));
    while !is_enough() {
        std::thread::sleep(Duration::from_millis(10));
    }
    STOP.store(true, Relaxed);
    goroutines.into_iter().for_each(|goroutine| goroutine.join().expect("no check fails"));
    thread.join().expect("no check fails");
    while DETACHED.load(SeqCst) > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    if is_traced {
        trace::stop().expect("the file takes all");
    }
    for ((name, _), done) in ACTS.iter().zip(&DONE) {
        println!("{name}={}", done.load(Relaxed));
    }
    let counted = runtime::counters();
    println!("steals={}", counted.steals);
    println!("direct_switches={}", counted.direct_switches);
    println!("runs_in_place={}", counted.runs_in_place);
    println!("timers={}", counted.timers);
    println!("wrong_locals={}", WRONG_LOCALS.load(Relaxed));
}

/// Ends early when much was seen.
fn orders(rounds: u64) {
    const ENOUGH: u64 = 10;
    let (give, run) = gosched::channel::unbounded();
    let note = |who: u64, times: usize| {
        let give = give.clone();
        go(move || (0..times).for_each(|_| give.send(who).expect("it is there")))
    };
    let take = || run.try_iter().collect::<Vec<_>>();
    let (mut seen, mut broken_in) = (HashSet::new(), 0);
    for round in 1.. {
        let all: Vec<_> = (0..4).map(|who| note(who, 1)).collect();
        all.into_iter().for_each(|one| one.join().expect("no panic"));
        seen.insert(take());
        let pair = [note(0, 50), note(1, 50)];
        pair.into_iter().for_each(|one| one.join().expect("no panic"));
        // Once is when the first of them has ended.
        broken_in += take().windows(2).filter(|two| two[0] != two[1]).count() as u64 - 1;
        if round == rounds || (seen.len() as u64 >= ENOUGH && broken_in >= ENOUGH) {
            break;
        }
    }
    println!("orders={}\nbroken_in={broken_in}", seen.len());
}

/// A run that has not ended so long after its time hangs, or does not do what it is for.
const PATIENCE: Duration = Duration::from_secs(240);

/// Whether everything has happened that the counts are to show.
fn is_enough() -> bool {
    let counted = runtime::counters();
    let has_threads = env::var("GOSCHED").is_ok_and(|text| text.contains("tls=threads"));
    // A thread for each goroutine has nobody to switch to. What is stolen by two processors only is
    // a matter of luck.
    DONE.iter().all(|done| done.load(Relaxed) > 0)
        && counted.timers > 0
        && (has_threads || counted.direct_switches.min(counted.runs_in_place) > 0)
        && (runtime::gomaxprocs(0) < 8 || counted.steals > 0)
}

/// Says who hangs, and ends the process.
fn give_up_after(time: Duration) {
    std::thread::sleep(time);
    let mut text = String::new();
    runtime::dump(&mut text).expect("a String takes everything");
    let (detached, counted) = (DETACHED.load(SeqCst), runtime::counters());
    eprintln!("hangs with {detached} detached\n{DONE:?}\n{counted:?}\n{text}");
    std::process::abort();
}

/// Acts until it is told to stop.
fn act(mut random: Random) {
    while !STOP.load(Relaxed) {
        act_once(&mut random, 0);
    }
}

fn act_once(random: &mut Random, depth: usize) {
    let kind = random.below(ACTS.len() as u64) as usize;
    if depth > 3 {
        return thread::yield_now();
    }
    with_locals(random.next(), || (ACTS[kind].1)(random, depth));
    DONE[kind].fetch_add(1, Relaxed);
}

std::thread_local! {
    static TAG: Cell<u64> = const { Cell::new(0) };
    static NOTES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// With thread-locals of their own goroutines find what they put there. With shared ones they
/// need not, and nothing is checked.
static WRONG_LOCALS: AtomicU64 = AtomicU64::new(0);

fn with_locals(tag: u64, f: impl FnOnce()) {
    if env_is_shared() {
        return f();
    }
    let before = TAG.replace(tag);
    NOTES.with_borrow_mut(|notes| notes.push(tag));
    f();
    let right = TAG.get() == tag && NOTES.with_borrow_mut(Vec::pop) == Some(tag);
    WRONG_LOCALS.fetch_add(u64::from(!right), Relaxed);
    TAG.set(before);
}

fn env_is_shared() -> bool {
    static SHARED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *SHARED.get_or_init(|| env::var("GOSCHED").is_ok_and(|text| text.contains("tls=shared")))
}

fn spawn_join(random: &mut Random, depth: usize) {
    let handles: Vec<_> = (0..random.below(20))
        .map(|i| {
            let (mut child, acts) = (random.fork(), random.below(3));
            let builder = match random.below(8) {
                0 => Builder::new().name(format!("child {i}")),
                1 => Builder::new().stack_size(1 << 20),
                _ => Builder::new(),
            };
            let body = move || {
                // Actors that are deep already only give way.
                (0..acts).for_each(|_| act_once(&mut child, depth + 2));
                [i; 5]
            };
            builder.spawn(body).expect("a goroutine")
        })
        .collect();
    for (i, handle) in handles.into_iter().enumerate() {
        assert_eq!(handle.join().expect("it does not panic"), [i as u64; 5]);
    }
}

fn spawn_detached(random: &mut Random, _: usize) {
    for _ in 0..random.below(10) {
        let yields = random.below(4);
        DETACHED.fetch_add(1, SeqCst);
        drop(go(move || {
            (0..yields).for_each(|_| thread::yield_now());
            DETACHED.fetch_sub(1, SeqCst);
        }));
    }
}

fn sleep(random: &mut Random, _: usize) {
    let (asked, start) = (Duration::from_micros(random.below(300)), Instant::now());
    thread::sleep(asked);
    assert!(start.elapsed() >= asked);
}

/// Two wake each other a few times.
fn park(random: &mut Random, _: usize) {
    let turns = random.below(10) as usize;
    let turn = Arc::new(AtomicUsize::new(0));
    let (me, theirs) = (thread::current(), turn.clone());
    let other = go(move || {
        for i in 0..turns {
            while theirs.load(SeqCst) != 2 * i + 1 {
                thread::park();
            }
            theirs.store(2 * i + 2, SeqCst);
            me.unpark();
        }
    });
    for i in 0..turns {
        turn.store(2 * i + 1, SeqCst);
        other.thread().unpark();
        while turn.load(SeqCst) != 2 * i + 2 {
            thread::park();
        }
    }
    other.join().expect("it does not panic");
    assert_eq!(turn.load(SeqCst), 2 * turns);
}

/// A token against a time-out.
fn park_timeout(random: &mut Random, _: usize) {
    let (me, delay) = (thread::current(), random.below(60));
    let told = Arc::new(AtomicBool::new(false));
    let telling = told.clone();
    let other = go(move || {
        thread::sleep(Duration::from_micros(delay));
        telling.store(true, SeqCst);
        me.unpark();
    });
    let timeout = Duration::from_micros(random.below(60));
    while !told.load(SeqCst) {
        thread::park_timeout(timeout);
    }
    other.join().expect("it does not panic");
}

fn scope(random: &mut Random, depth: usize) {
    let count = random.below(12);
    let mut places = vec![0; count as usize];
    let mut children: Vec<_> = places.iter().map(|_| random.fork()).collect();
    let sum = thread::scope(|scope| {
        for (i, (place, child)) in places.iter_mut().zip(&mut children).enumerate() {
            scope.spawn(move || {
                act_once(child, depth + 2);
                *place = i as u64 + 1;
            });
        }
        scope.spawn(move || count * (count + 1) / 2).join().expect("it does not panic")
    });
    assert_eq!(places.iter().sum::<u64>(), sum);
}

/// A guard that waits while it is dropped by unwinding.
struct WaitsInDrop(u64);

impl Drop for WaitsInDrop {
    fn drop(&mut self) {
        (0..self.0).for_each(|_| thread::yield_now());
        thread::sleep(Duration::from_micros(self.0));
    }
}

fn caught_panic(random: &mut Random, _: usize) {
    let (waits, value) = (random.below(5), random.next());
    let panics = go(move || {
        let _guard = WaitsInDrop(waits);
        if value % 3 > 0 {
            panic::panic_any(value);
        }
        value
    });
    match panics.join() {
        Ok(returned) => assert!(returned == value && value % 3 == 0),
        Err(thrown) => assert_eq!(thrown.downcast_ref(), Some(&value)),
    }
}

fn plain_thread(random: &mut Random, _: usize) {
    if random.below(4) > 0 {
        return;
    }
    let value = random.next();
    let (parked, target) = (go(thread::park), random.below(2));
    let wakes = parked.thread();
    let plain = std::thread::spawn(move || {
        let inner = go(move || value).join().expect("it does not panic");
        (0..=target).for_each(|_| wakes.unpark());
        inner
    });
    parked.join().expect("it does not panic");
    // A plain wait for a thread: the machine's, not the goroutine's.
    while !plain.is_finished() {
        thread::yield_now();
    }
    assert_eq!(plain.join().expect("it does not panic"), value);
}

/// Uses some KiB of stack, and waits at the bottom.
fn deep(depth: u64) -> u64 {
    let room = std::hint::black_box([depth; 32]);
    if depth == 0 {
        thread::yield_now();
        return 0;
    }
    let below = deep(depth - 1);
    assert!(room.iter().all(|word| *word == depth));
    below
}

/// Floating point, allocation and formatting across yields.
fn compute(random: &mut Random, _: usize) {
    let (a, b) = (random.below(1000), 1 + random.below(1000));
    let quotient = a as f64 / b as f64;
    let text = format!("{quotient:.17}");
    thread::yield_now();
    assert_eq!(
        text.parse::<f64>().expect("a number"),
        format!("{quotient:.17}").parse().expect("one")
    );
    let sorted =
        (0..random.below(500)).map(|_| random.next()).collect::<std::collections::BTreeSet<_>>();
    runtime::gosched();
    assert!(sorted.iter().zip(sorted.iter().skip(1)).all(|(a, b)| a < b));
}
