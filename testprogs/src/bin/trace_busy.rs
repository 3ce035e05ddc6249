//! Everything that a trace shows, until so many generations have passed and goroutines have been stopped
//! so often, and calls of both kinds have lost processors: `trace_busy FILE GENERATIONS STOPPED`.
//!
//! Channels, sockets, timers, locks, declared and undeclared blocking, computations that have to be
//! stopped, plain threads that wake and spawn, changes of GOMAXPROCS, collections, tasks and regions.
//! Prints how often each was done; the trace must agree.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::time::{Duration, Instant};
use std::{env, fs, hint};

use gosched::net::{TcpListener, TcpStream};
use gosched::sync::{Mutex, WaitGroup};
use gosched::{blocking, channel, go, runtime, thread, time, trace};

static STOP: AtomicBool = AtomicBool::new(false);
static ROUNDS: AtomicU64 = AtomicU64::new(0);
/// Goroutines that plain threads have spawned.
static OUTSIDE: AtomicU64 = AtomicU64::new(0);
const PROCS_MAX: usize = 4;
/// So many times, at least, goroutines begin to run: more than the test wants to see.
const STARTS: u64 = 1100;

fn goes_on() -> bool {
    !STOP.load(Relaxed)
}

#[gosched::main]
fn main() {
    let mut arguments = env::args().skip(1);
    let file = arguments.next().expect("a file");
    let generations: u64 =
        arguments.next().and_then(|text| text.parse().ok()).expect("a number of generations");
    let stopped: u64 = arguments.next().and_then(|text| text.parse().ok()).expect("a number");
    // Figures of processors out of service are not summed up.
    runtime::gomaxprocs(PROCS_MAX);
    // Something that waits since before the trace began, and something that is blocked.
    let (tell_old, old) = channel::bounded::<u64>(0);
    let waits = go(move || old.recv().expect("it is told"));
    let sleeps = go(|| std::thread::sleep(Duration::from_millis(200)));
    let written = Counted::default();
    let generation_count = written.flushes.clone();
    let around = Tally::now();
    trace::start(written.into_file(&file)).expect("no other trace is on");
    let within = Tally::now();
    let before = runtime::counters();
    let stops_before = runtime::world_stops().count;
    let goroutines = [
        go(channels),
        go(sockets),
        go(timers),
        go(locks),
        go(declared),
        go(undeclared),
        go(computes),
        go(plain_threads),
        go(procs),
        go(collects),
    ];
    let is_enough = || {
        let counters = runtime::counters();
        generation_count.load(SeqCst) >= generations
            && Tally::now().since(within).starts() >= STARTS
            && runtime::preemptions().in_place >= stopped
            && counters.declared_hand_offs >= before.declared_hand_offs + 3
            && counters.undeclared_hand_offs >= before.undeclared_hand_offs + 3
    };
    let mut steps = 0;
    while !is_enough() {
        steps += 1;
        tasks();
        time::sleep(Duration::from_millis(1));
    }
    STOP.store(true, SeqCst);
    goroutines.into_iter().for_each(|goroutine| goroutine.join().expect("it does not panic"));
    tell_old.send(7).expect("it waits");
    assert_eq!(waits.join().expect("it does not panic"), 7);
    sleeps.join().expect("it does not panic");
    runtime::gomaxprocs(PROCS_MAX);
    let after = runtime::counters();
    let stops = runtime::world_stops().count - stops_before;
    let within = Tally::now().since(within);
    trace::stop().expect("the file takes all");
    let around = Tally::now().since(around);
    for (name, least, most) in within.with(around) {
        println!("{name}_least={least}");
        println!("{name}_most={most}");
    }
    println!("created={}", after.created - before.created + OUTSIDE.load(SeqCst));
    println!("collections={}", after.collections - before.collections);
    println!("stops={stops}");
    println!("steps={steps}");
    println!("rounds={}", ROUNDS.load(Relaxed));
    println!("forced={}", runtime::preemptions().in_place);
    println!("undeclared={}", runtime::counters().undeclared_hand_offs);
    println!("declared={}", runtime::counters().declared_hand_offs);
}

/// What the runtime counts that a trace has events of.
#[derive(Clone, Copy)]
struct Tally([u64; 5]);

const NAMES: [&str; 5] = ["starts", "ends", "asked", "stopped", "collections"];

impl Tally {
    fn now() -> Tally {
        let (c, p) = (runtime::counters(), runtime::preemptions());
        let starts = c.scheduled + c.direct_switches + c.runs_in_place;
        Tally([starts, c.ended, c.asked_yields, p.in_place + p.frozen, c.collections])
    }

    fn starts(self) -> u64 {
        self.0[0]
    }

    fn since(self, before: Tally) -> Tally {
        Tally(std::array::from_fn(|i| self.0[i] - before.0[i]))
    }

    /// The trace began and ended between the two: it has at least what was counted within it, and at
    /// most what was counted around it.
    fn with(self, around: Tally) -> impl Iterator<Item = (&'static str, u64, u64)> {
        (0..NAMES.len()).map(move |i| (NAMES[i], self.0[i], around.0[i]))
    }
}

/// Counts the generations that were written.
#[derive(Default)]
struct Counted {
    flushes: Arc<AtomicU64>,
}

struct CountedFile {
    flushes: Arc<AtomicU64>,
    file: fs::File,
}

impl Counted {
    fn into_file(self, path: &str) -> CountedFile {
        let file = fs::File::create(path).expect("a file can be made there");
        CountedFile { flushes: self.flushes, file }
    }
}

impl Write for CountedFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.flushes.fetch_add(1, SeqCst);
        self.file.flush()
    }
}

fn done() {
    ROUNDS.fetch_add(1, Relaxed);
}

fn channels() {
    while goes_on() {
        let (sender, receiver) = channel::bounded(4);
        let producers: Vec<_> = (0..4)
            .map(|i| {
                let sender = sender.clone();
                go(move || (0..20).for_each(|n| sender.send(i * n).expect("it is received")))
            })
            .collect();
        drop(sender);
        assert_eq!(receiver.iter().count(), 80);
        producers.into_iter().for_each(|producer| producer.join().expect("it does not panic"));
        done();
    }
}

fn sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has one");
    while goes_on() {
        let client = go(move || {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(b"question").expect("it is read");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).expect("it is written");
            assert_eq!(answer, b"question");
        });
        let (mut stream, _) = listener.accept().expect("somebody connects");
        let mut question = [0; 8];
        stream.read_exact(&mut question).expect("it is written");
        stream.write_all(&question).expect("it is read");
        drop(stream);
        client.join().expect("it does not panic");
        done();
    }
}

fn timers() {
    while goes_on() {
        time::sleep(Duration::from_micros(300));
        done();
    }
}

fn locks() {
    let shared = Arc::new(Mutex::new(0_u64));
    while goes_on() {
        let group = WaitGroup::new();
        for _ in 0..4 {
            let (shared, group) = (shared.clone(), group.clone());
            group.add(1);
            go(move || {
                let mut held = shared.lock().expect("nobody panics");
                *held += 1;
                thread::yield_now();
                drop(held);
                group.done();
            });
        }
        group.wait();
        done();
    }
}

fn declared() {
    while goes_on() {
        blocking(|| std::thread::sleep(Duration::from_micros(700)));
        blocking(|| hint::black_box(3));
        done();
    }
}

fn undeclared() {
    while goes_on() {
        std::thread::sleep(Duration::from_millis(3));
        done();
        thread::yield_now();
    }
}

fn computes() {
    while goes_on() {
        let until = Instant::now() + Duration::from_millis(15);
        while Instant::now() < until {
            hint::black_box((0..2000_u32).map(hint::black_box).sum::<u32>());
        }
        runtime::gosched();
        done();
    }
}

fn plain_threads() {
    while goes_on() {
        let parked = go(thread::park);
        let handle = parked.thread();
        let plain = std::thread::spawn(move || {
            handle.unpark();
            OUTSIDE.fetch_add(1, SeqCst);
            go(|| 5).join().expect("it does not panic")
        });
        parked.join().expect("it does not panic");
        assert_eq!(plain.join().expect("it does not panic"), 5);
        time::sleep(Duration::from_millis(5));
        done();
    }
}

fn procs() {
    for n in [1, 3, 2, PROCS_MAX].into_iter().cycle() {
        if !goes_on() {
            break;
        }
        runtime::gomaxprocs(n);
        time::sleep(Duration::from_millis(20));
        done();
    }
}

fn collects() {
    while goes_on() {
        runtime::gc();
        time::sleep(Duration::from_millis(30));
        done();
    }
}

fn tasks() {
    let task = trace::Task::new("step");
    task.log("round", "one");
    let _region = task.region("waits");
    thread::yield_now();
    trace::log("free", "message");
}
