//! The peer benches on plain OS threads: std::thread, std::sync and crossbeam channels.
//! `procs` is the number of CPUs that the process may run on. Where a default n would take
//! threads too long it is smaller than in the other peers; ns_per_op compares all the same.

use crossbeam_channel::{Receiver, bounded, select, unbounded};
use peers_common::*;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::{Builder, JoinHandle, sleep, yield_now};
use std::time::{Duration, Instant};

const BENCHES: &[Bench] = &[
    ("spawn_join", spawn_join),
    ("spawn_burst", spawn_burst),
    ("parked_memory", parked_memory),
    ("yield2", |a| yields(a, 2)),
    ("yield100", |a| yields(a, 100)),
    ("pingpong", pingpong),
    ("net_pingpong", net_pingpong),
    ("chan_spsc", |a| chan(a, 1)),
    ("chan_mpmc", |a| chan(a, 4)),
    ("select4", select4),
    ("mutex", mutex),
    ("rwmutex", rwmutex),
    ("fanout", fanout),
    ("skynet", skynet),
    ("ring", ring),
    ("sieve", sieve),
    ("forkjoin_fib", forkjoin_fib),
    ("timers_sleep", timers_sleep),
    ("timer_churn", |a| a.skip("std has no timers: a thread that waits is its own timer")),
    ("sleep_accuracy", sleep_accuracy),
    ("preempt_latency", preempt),
    ("forensics", forensics),
    ("blocking", blocking),
    ("steal_uneven", steal_uneven),
    ("idle", idle),
    ("syscall_overhead", getpid_loop),
    ("serve_echo", |a| serve(a, net::serve_echo)),
    ("http_hello", |a| serve(a, net::serve_http)),
    ("http_raw", |a| serve(a, net::serve_http)),
];

fn main() {
    let args = Args::parse("threads");
    let procs = if args.bench.starts_with("yield") { 1 } else { args.procs };
    use_cpus(procs);
    args.dispatch(BENCHES);
}

/// Keeps the process to the first `procs` of its CPUs.
fn use_cpus(procs: usize) {
    // SAFETY: sets of CPUs on this stack, which the kernel fills and reads.
    unsafe {
        let size = size_of::<libc::cpu_set_t>();
        let mut allowed = std::mem::zeroed::<libc::cpu_set_t>();
        assert_eq!(libc::sched_getaffinity(0, size, &mut allowed), 0);
        let mut chosen = std::mem::zeroed::<libc::cpu_set_t>();
        (0..libc::CPU_SETSIZE as usize)
            .filter(|cpu| libc::CPU_ISSET(*cpu, &allowed))
            .take(procs)
            .for_each(|cpu| libc::CPU_SET(cpu, &mut chosen));
        assert_eq!(libc::sched_setaffinity(0, size, &chosen), 0);
    }
}

/// A thread with a stack that suits many of them.
fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().stack_size(64 << 10).spawn(f).expect("spawn a thread")
}

fn join_all<T>(threads: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

/// A thread's stack and guard are two mappings, and the kernel bounds threads too.
fn fit(n: u64) -> u64 {
    n.min(max_mapped_stacks()).min(30_000)
}

fn capped(report: Report, n: u64, wanted: u64) -> Report {
    match n < wanted {
        true => report.set("n_asked", wanted).set("note", "n capped: too many OS threads"),
        false => report,
    }
}

// ------------------------------------------------------------------------ tasks

fn spawn_join(args: &Args) -> Report {
    let n = args.n(20_000);
    let t0 = Instant::now();
    let mut joined = 0;
    while joined < n {
        let wave = (n - joined).min(1000);
        let threads: Vec<_> = (0..wave).map(|_| spawn(|| ())).collect();
        for thread in threads {
            thread.join().unwrap();
            joined += 1;
        }
    }
    args.report(n).time(t0.elapsed(), n)
}

fn spawn_burst(args: &Args) -> Report {
    let n = args.n(20_000);
    let burst = fit(n).min(10_000); // an ended thread keeps its stack until it is joined
    let count = Arc::new(AtomicU64::new(0));
    let t0 = Instant::now();
    let mut spawned = 0;
    while spawned < n {
        let now = burst.min(n - spawned);
        let threads: Vec<_> = (0..now)
            .map(|_| {
                let count = count.clone();
                spawn(move || count.fetch_add(1, Relaxed))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        spawned += now;
    }
    let took = t0.elapsed();
    assert_eq!(count.load(Relaxed), n);
    args.report(n).time(took, n).set("burst", burst)
}

fn parked_memory(args: &Args) -> Report {
    let wanted = args.n(10_000);
    let n = fit(wanted);
    let (tx, rx) = bounded::<()>(0);
    let (here_tx, here_rx) = unbounded();
    let mut threads = Vec::with_capacity(n as usize);
    let before = rss();
    let t0 = Instant::now();
    for _ in 0..n {
        let (rx, here) = (rx.clone(), here_tx.clone());
        threads.push(spawn(move || {
            drop(here);
            assert!(rx.recv().is_err());
        }));
    }
    drop(here_tx);
    let nobody: Result<(), _> = here_rx.recv(); // returns once all have dropped `here`
    assert!(nobody.is_err());
    let spawned = t0.elapsed();
    sleep(Duration::from_millis(200));
    let bytes = rss().saturating_sub(before);
    let t1 = Instant::now();
    drop(tx);
    for thread in threads {
        thread.join().unwrap();
    }
    let woken = t1.elapsed();
    let report = args
        .report(n)
        .time(spawned, n)
        .set("bytes_per_task", bytes as f64 / n as f64)
        .set("wake_ns_per_task", woken.as_nanos() as f64 / n as f64)
        .set("via", "closed channel; bytes are without the kernel's stacks");
    capped(report, n, wanted)
}

fn yields(args: &Args, threads: u64) -> Report {
    let args = args.on_one_proc();
    let each = args.n(500_000).div_ceil(threads);
    let t0 = Instant::now();
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            spawn(move || {
                for _ in 0..each {
                    yield_now();
                }
                each
            })
        })
        .collect();
    let n = join_all(threads).iter().sum();
    args.report(n).time(t0.elapsed(), n)
}

// --------------------------------------------------------------------- channels

fn channel(args: &Args) -> (usize, String) {
    let cap = args.get("cap", 0);
    (cap, format!("crossbeam cap {cap}"))
}

fn pingpong(args: &Args) -> Report {
    let n = args.n(100_000);
    let (cap, channel) = channel(args);
    let (ping_tx, ping_rx) = bounded(cap);
    let (pong_tx, pong_rx) = bounded(cap);
    let t0 = Instant::now();
    spawn(move || {
        for v in ping_rx {
            pong_tx.send(v + 1).unwrap();
        }
    });
    let player = spawn(move || {
        let mut ball = 0;
        for _ in 0..n {
            ping_tx.send(ball).unwrap();
            ball = pong_rx.recv().unwrap();
        }
        ball
    });
    assert_eq!(player.join().unwrap(), n);
    args.report(n).time(t0.elapsed(), n).set("channel", channel)
}

fn net_pingpong(args: &Args) -> Report {
    let n = args.n(100_000);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let echo = spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        net::serve_echo(stream).unwrap();
    });
    let player = spawn(move || {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let t0 = Instant::now();
        (net::play(stream, n).unwrap(), t0.elapsed())
    });
    let (times, took) = player.join().unwrap();
    echo.join().unwrap();
    args.report(n).time(took, n).round_trips(times)
}

fn chan(args: &Args, pairs: u64) -> Report {
    let each = args.n(5_000_000).div_ceil(pairs);
    let n = each * pairs;
    let cap = args.get("cap", 128);
    let (tx, rx) = bounded(cap);
    let t0 = Instant::now();
    for p in 0..pairs {
        let tx = tx.clone();
        spawn(move || (0..each).for_each(|i| tx.send(p * each + i).unwrap()));
    }
    drop(tx);
    let consumers: Vec<_> = (0..pairs)
        .map(|_| {
            let rx = rx.clone();
            spawn(move || rx.iter().sum::<u64>())
        })
        .collect();
    assert_eq!(join_all(consumers).iter().sum::<u64>(), n * (n - 1) / 2);
    args.report(n).time(t0.elapsed(), n).set("channel", format!("crossbeam cap {cap}"))
}

fn select4(args: &Args) -> Report {
    let each = args.n(200_000).div_ceil(4);
    let n = 4 * each;
    let (cap, channel) = channel(args);
    let t0 = Instant::now();
    let feed = |p: u64| -> Receiver<u64> {
        let (tx, rx) = bounded(cap);
        spawn(move || (0..each).for_each(|i| tx.send(p * each + i).unwrap()));
        rx
    };
    let (mut a, mut b, mut c, mut d) = (feed(0), feed(1), feed(2), feed(3));
    let selector = spawn(move || {
        use crossbeam_channel::never;
        let (mut sum, mut count, mut open) = (0, 0, 4);
        while open > 0 {
            let (got, from) = select! {
                recv(a) -> v => (v, &mut a),
                recv(b) -> v => (v, &mut b),
                recv(c) -> v => (v, &mut c),
                recv(d) -> v => (v, &mut d),
            };
            match got {
                Ok(v) => {
                    sum += v;
                    count += 1;
                }
                Err(_) => {
                    *from = never();
                    open -= 1;
                }
            }
        }
        (sum, count)
    });
    assert_eq!(selector.join().unwrap(), (n * (n - 1) / 2, n));
    args.report(n).time(t0.elapsed(), n).set("channel", channel)
}

// ------------------------------------------------------------------------ locks

const LOCKERS: u64 = 8;

fn mutex(args: &Args) -> Report {
    let each = args.n(2_000_000).div_ceil(LOCKERS);
    let n = each * LOCKERS;
    let total = Arc::new(Mutex::new(0));
    let t0 = Instant::now();
    let threads = (0..LOCKERS).map(|_| {
        let total = total.clone();
        spawn(move || {
            for _ in 0..each {
                *total.lock().unwrap() += 1;
            }
        })
    });
    join_all(threads.collect::<Vec<_>>());
    let took = t0.elapsed();
    assert_eq!(*total.lock().unwrap(), n);
    args.report(n).time(took, n).set("lock", "std::sync::Mutex")
}

fn rwmutex(args: &Args) -> Report {
    let each = args.n(2_000_000).div_ceil(LOCKERS * 10) * 10;
    let n = each * LOCKERS;
    let total = Arc::new(RwLock::new(0));
    let t0 = Instant::now();
    let threads = (0..LOCKERS).map(|_| {
        let total = total.clone();
        spawn(move || {
            let mut seen = 0;
            for i in 0..each {
                if i % 10 == 0 {
                    *total.write().unwrap() += 1;
                } else {
                    seen = seen.max(*total.read().unwrap());
                }
            }
            seen
        })
    });
    let seen = join_all(threads.collect::<Vec<_>>());
    let took = t0.elapsed();
    assert_eq!(*total.read().unwrap(), n / 10);
    assert!(seen.iter().all(|s| *s <= n / 10));
    args.report(n).time(took, n).set("lock", "std::sync::RwLock")
}

// ------------------------------------------------------------------- whole programs

fn fanout(args: &Args) -> Report {
    const WIDTH: u64 = 16;
    let rounds = args.n(1_000);
    let count = Arc::new(AtomicU64::new(0));
    let t0 = Instant::now();
    for _ in 0..rounds {
        let threads: [_; WIDTH as usize] = std::array::from_fn(|_| {
            let count = count.clone();
            spawn(move || count.fetch_add(1, Relaxed))
        });
        for thread in threads {
            thread.join().unwrap();
        }
    }
    let took = t0.elapsed();
    assert_eq!(count.load(Relaxed), rounds * WIDTH);
    args.report(rounds)
        .time(took, rounds)
        .set("ns_per_task", took.as_nanos() as f64 / (rounds * WIDTH) as f64)
}

fn skynet(args: &Args) -> Report {
    fn node(out: crossbeam_channel::Sender<u64>, first: u64, size: u64, cap: usize) {
        if size == 1 {
            return out.send(first).unwrap();
        }
        let (tx, rx) = bounded(cap);
        let child = size / 10;
        for i in 0..10 {
            let tx = tx.clone();
            spawn(move || node(tx, first + i * child, child, cap));
        }
        drop(tx);
        out.send(rx.iter().sum()).unwrap();
    }
    let wanted = args.n(10_000);
    let n = 10u64.pow(fit(wanted).ilog10());
    let (cap, channel) = channel(args);
    let t0 = Instant::now();
    let (tx, rx) = bounded(cap);
    spawn(move || node(tx, 0, n, cap));
    assert_eq!(rx.recv(), Ok(n * (n - 1) / 2));
    capped(args.report(n).time(t0.elapsed(), n).set("channel", channel), n, wanted)
}

fn ring(args: &Args) -> Report {
    const SIZE: u64 = 503;
    let hops = args.n(100_000);
    let (cap, channel) = channel(args);
    let (done_tx, done_rx) = bounded(1);
    let (first_tx, mut rx) = bounded(cap);
    for id in 0..SIZE {
        let (next_tx, next_rx) = bounded(cap);
        let tx = if id == SIZE - 1 { first_tx.clone() } else { next_tx };
        let input = std::mem::replace(&mut rx, next_rx);
        let done = done_tx.clone();
        spawn(move || {
            for left in input {
                match left {
                    0 => return done.send(id).unwrap(),
                    left => tx.send(left - 1).unwrap(),
                }
            }
        });
    }
    let t0 = Instant::now();
    first_tx.send(hops).unwrap();
    assert_eq!(done_rx.recv(), Ok(hops % SIZE));
    args.report(hops).time(t0.elapsed(), hops).set("channel", channel)
}

fn sieve(args: &Args) -> Report {
    let n = args.n(500);
    let (truth, transfers) = sieve_truth(n);
    let (cap, channel) = channel(args);
    let t0 = Instant::now();
    let (tx, mut rx) = bounded(cap);
    spawn(move || {
        let mut i = 2;
        while tx.send(i).is_ok() {
            i += 1;
        }
    });
    let mut prime = 0;
    for _ in 0..n {
        prime = rx.recv().unwrap();
        let (tx, filtered) = bounded(cap);
        let input = std::mem::replace(&mut rx, filtered);
        spawn(move || {
            for i in input {
                if i % prime != 0 && tx.send(i).is_err() {
                    return;
                }
            }
        });
    }
    let took = t0.elapsed();
    assert_eq!(prime, truth);
    args.report(n).time(took, transfers).set("last_prime", prime).set("channel", channel)
}

fn forkjoin_fib(args: &Args) -> Report {
    fn task(n: u64) -> u64 {
        if n < 10 {
            return fib(opaque(n));
        }
        let left = spawn(move || task(n - 1));
        let right = task(n - 2);
        left.join().unwrap() + right
    }
    let n = args.n(27);
    if fib_spawns(n) > fit(u64::MAX) {
        return args.skip("too many OS threads at once");
    }
    let reps = args.get("reps", 2);
    let (truth, spawns) = (fib(n), reps * fib_spawns(n));
    let t0 = Instant::now();
    for _ in 0..reps {
        assert_eq!(task(n), truth);
    }
    let took = t0.elapsed();
    args.report(n).time(took, spawns).set("reps", reps).set("secs_per_rep", took.as_secs_f64() / reps as f64)
}

fn steal_uneven(args: &Args) -> Report {
    let rounds = args.n(200);
    let total = Arc::new(AtomicU64::new(0));
    let t0 = Instant::now();
    let mut tasks = 0;
    for _ in 0..rounds {
        let spawners = (0..args.procs as u64).map(|p| {
            let total = total.clone();
            spawn(move || {
                let share = (0..100 + 50 * p).map(|_| {
                    let total = total.clone();
                    spawn(move || total.fetch_add(sum_to(10_000), Relaxed))
                });
                join_all(share.collect::<Vec<_>>()).len() as u64
            })
        });
        tasks += join_all(spawners.collect::<Vec<_>>()).iter().sum::<u64>();
    }
    let took = t0.elapsed();
    assert_eq!(total.load(Relaxed), tasks * 49_995_000);
    args.report(rounds).time(took, tasks).set("tasks", tasks)
}

// ----------------------------------------------------------------------- timers

fn timers_sleep(args: &Args) -> Report {
    let wanted = args.n(10_000);
    let n = fit(wanted);
    let whole_ms = args.text("grain", "us") == "ms";
    let t0 = Instant::now();
    let threads: Vec<_> = (0..n)
        .map(|i| {
            spawn(move || {
                let asked = nth_sleep(i, whole_ms);
                let t0 = Instant::now();
                sleep(asked);
                late(t0, asked)
            })
        })
        .collect();
    let lateness = join_all(threads);
    capped(args.report(n).secs(t0.elapsed()).lateness(lateness), n, wanted)
}

fn sleep_accuracy(args: &Args) -> Report {
    let n = args.n(1000);
    let asked = Duration::from_millis(1);
    let mut lateness = Vec::with_capacity(n as usize);
    let t0 = Instant::now();
    for _ in 0..n {
        let t0 = Instant::now();
        sleep(asked);
        lateness.push(late(t0, asked));
    }
    args.report(n).secs(t0.elapsed()).lateness(lateness)
}

// --------------------------------------------------------------------- fairness

fn preempt(args: &Args) -> Report {
    let sleeper = |probe: &'static Probe| {
        spawn(move || {
            let asked = Duration::from_millis(1);
            while !probe.over() {
                let t0 = Instant::now();
                sleep(asked);
                probe.woke(late(t0, asked));
            }
            probe.finish();
        });
    };
    let hog = |probe: &'static Probe| {
        spawn(move || probe.hog());
    };
    preempt_latency(args, sleeper, hog)
}

fn forensics(args: &Args) -> Report {
    let n = fit(args.n(1000));
    let mode: &'static str = args.text("mode", "busy").leak();
    let busy = Duration::from_millis(10);
    let iters = calibrate(busy);
    let t0 = Instant::now();
    let threads = (0..n).map(|_| {
        spawn(move || {
            match mode {
                "busy" => drop(spin(iters)),
                "yield" => {
                    for _ in 0..100 {
                        spin(iters / 100);
                        yield_now();
                    }
                }
                "sleep" => sleep(busy),
                _ => panic!("mode is busy, yield or sleep"),
            }
            t0.elapsed().as_nanos() as u64
        })
    });
    let done = join_all(threads.collect::<Vec<_>>());
    forensics_report(args, n, mode, t0.elapsed(), done)
}

fn blocking(args: &Args) -> Report {
    let n = fit(args.n(200));
    let over = Arc::new(AtomicU64::new(0));
    let ticker = spawn({
        let over = over.clone();
        move || {
            let asked = Duration::from_millis(1);
            let mut lateness = Vec::new();
            while over.load(Relaxed) == 0 {
                let t0 = Instant::now();
                sleep(asked);
                lateness.push(late(t0, asked));
            }
            lateness
        }
    });
    sleep(Duration::from_millis(20));
    let t0 = Instant::now();
    let block = Duration::from_millis(args.get("ms", 50));
    let threads: Vec<_> = (0..n).map(|_| spawn(move || blocking_sleep(block))).collect();
    join_all(threads);
    let took = t0.elapsed();
    over.store(1, Relaxed);
    let lateness = ticker.join().unwrap();
    args.report(n)
        .secs(took)
        .set("ticks", lateness.len())
        .lateness(lateness)
        .set("via", "directly in the thread")
}

fn idle(args: &Args) -> Report {
    let wanted = args.n(10_000);
    let n = fit(wanted);
    let (tx, rx) = bounded::<()>(0);
    for _ in 0..n {
        let rx = rx.clone();
        spawn(move || rx.recv());
    }
    let report = measure_idle(args, n);
    drop(tx);
    capped(report, n, wanted)
}

// ---------------------------------------------------------------------- servers

fn serve(args: &Args, handle: fn(TcpStream) -> std::io::Result<()>) -> Report {
    let listener = TcpListener::bind(("127.0.0.1", args.get("port", 0u16))).unwrap();
    net::announce(args, &listener, listener.local_addr().unwrap().port());
    loop {
        let Ok((stream, _)) = listener.accept() else { continue };
        let _ = stream.set_nodelay(true);
        spawn(move || handle(stream));
    }
}
