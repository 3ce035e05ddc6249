//! The peer benches on tokio's multi-thread runtime.

mod serve;

use peers_common::*;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, Notify, RwLock, mpsc};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::sleep;

/// A bench that runs as the first task of a runtime of `procs` workers.
macro_rules! in_task {
    ($name:literal, $f:expr) => {
        ($name, |a| runtime(a).block_on(async { tokio::spawn($f(a.clone())).await.unwrap() }))
    };
}

const BENCHES: &[Bench] = &[
    in_task!("spawn_join", spawn_join),
    in_task!("spawn_burst", spawn_burst),
    in_task!("parked_memory", parked_memory),
    ("yield2", |a| yields(a, 2)),
    ("yield100", |a| yields(a, 100)),
    in_task!("pingpong", pingpong),
    in_task!("net_pingpong", serve::pingpong),
    in_task!("chan_spsc", chan_spsc),
    in_task!("chan_mpmc", chan_mpmc),
    in_task!("select4", select4),
    in_task!("mutex", mutex),
    in_task!("mutex_std", mutex_std),
    in_task!("rwmutex", rwmutex),
    in_task!("fanout", fanout),
    in_task!("skynet", skynet),
    in_task!("ring", ring),
    in_task!("sieve", sieve),
    in_task!("forkjoin_fib", forkjoin_fib),
    in_task!("timers_sleep", timers_sleep),
    in_task!("timer_churn", timer_churn),
    in_task!("sleep_accuracy", sleep_accuracy),
    ("preempt_latency", preempt),
    in_task!("forensics", forensics),
    in_task!("blocking", blocking_pool),
    in_task!("blocking_pool", blocking_pool),
    in_task!("blocking_naive", blocking_naive),
    in_task!("steal_uneven", steal_uneven),
    ("idle", idle),
    in_task!("syscall_overhead", async |a: Args| getpid_loop(&a)),
    in_task!("serve_echo", serve::echo),
    in_task!("http_hello", serve::http_hello),
    in_task!("http_raw", serve::http_raw),
];

fn main() {
    Args::parse("tokio").dispatch(BENCHES);
}

fn runtime(args: &Args) -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(args.procs).enable_all().build().unwrap()
}

async fn join_all<T>(tasks: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    let tasks = tasks.into_iter();
    let mut results = Vec::with_capacity(tasks.size_hint().0);
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

/// tokio has no rendezvous channel, so an "unbuffered" one has room for one.
fn channel(args: &Args) -> (usize, String) {
    let cap = args.get("cap", 0).max(1);
    (cap, format!("tokio mpsc cap {cap} (no rendezvous)"))
}

// ------------------------------------------------------------------------ tasks

async fn spawn_join(args: Args) -> Report {
    let n = args.n(1_000_000);
    let t0 = Instant::now();
    let mut joined = 0;
    while joined < n {
        let wave = (n - joined).min(1000);
        let tasks: Vec<_> = (0..wave).map(|_| tokio::spawn(async {})).collect();
        for task in tasks {
            task.await.unwrap();
            joined += 1;
        }
    }
    args.report(n).time(t0.elapsed(), n)
}

async fn spawn_burst(args: Args) -> Report {
    let n = args.n(1_000_000);
    let count = Arc::new(AtomicU64::new(0));
    let t0 = Instant::now();
    let tasks: Vec<_> = (0..n)
        .map(|_| {
            let count = count.clone();
            tokio::spawn(async move {
                count.fetch_add(1, Relaxed);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let took = t0.elapsed();
    assert_eq!(count.load(Relaxed), n);
    args.report(n).time(took, n)
}

async fn parked_memory(args: Args) -> Report {
    let n = args.n(1_000_000);
    let notify = Arc::new(Notify::new());
    let all_here = Arc::new(Notify::new());
    let parked = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::with_capacity(n as usize);
    let before = rss();
    let t0 = Instant::now();
    for _ in 0..n {
        let (notify, all_here, parked) = (notify.clone(), all_here.clone(), parked.clone());
        tasks.push(tokio::spawn(async move {
            let notified = notify.notified(); // sees every notify_waiters() from here on
            if parked.fetch_add(1, Relaxed) == n - 1 {
                all_here.notify_one();
            }
            notified.await;
        }));
    }
    all_here.notified().await;
    let spawned = t0.elapsed();
    sleep(Duration::from_millis(200)).await;
    let bytes = rss().saturating_sub(before);
    let t1 = Instant::now();
    notify.notify_waiters();
    for task in tasks {
        task.await.unwrap();
    }
    let woken = t1.elapsed();
    args.report(n)
        .time(spawned, n)
        .set("bytes_per_task", bytes as f64 / n as f64)
        .set("wake_ns_per_task", woken.as_nanos() as f64 / n as f64)
        .set("via", "Notify")
}

fn yields(args: &Args, tasks: u64) -> Report {
    let args = args.on_one_proc();
    let each = args.n(5_000_000).div_ceil(tasks);
    runtime(&args).block_on(async move {
        tokio::spawn(async move {
            let t0 = Instant::now();
            let tasks: Vec<_> = (0..tasks)
                .map(|_| {
                    tokio::spawn(async move {
                        for _ in 0..each {
                            yield_now().await;
                        }
                        each
                    })
                })
                .collect();
            let n = join_all(tasks).await.iter().sum();
            args.report(n).time(t0.elapsed(), n)
        })
        .await
        .unwrap()
    })
}

// --------------------------------------------------------------------- channels

async fn pingpong(args: Args) -> Report {
    let n = args.n(2_000_000);
    let (cap, channel) = channel(&args);
    let (ping_tx, mut ping_rx) = mpsc::channel(cap);
    let (pong_tx, mut pong_rx) = mpsc::channel(cap);
    let t0 = Instant::now();
    tokio::spawn(async move {
        while let Some(v) = ping_rx.recv().await {
            pong_tx.send(v + 1).await.unwrap();
        }
    });
    let player = tokio::spawn(async move {
        let mut ball = 0;
        for _ in 0..n {
            ping_tx.send(ball).await.unwrap();
            ball = pong_rx.recv().await.unwrap();
        }
        ball
    });
    assert_eq!(player.await.unwrap(), n);
    args.report(n).time(t0.elapsed(), n).set("channel", channel)
}

async fn chan_spsc(args: Args) -> Report {
    let n = args.n(5_000_000);
    let cap = args.get("cap", 128);
    let (tx, mut rx) = mpsc::channel(cap);
    let t0 = Instant::now();
    tokio::spawn(async move {
        for i in 0..n {
            tx.send(i).await.unwrap();
        }
    });
    let consumer = tokio::spawn(async move {
        let (mut sum, mut count) = (0, 0);
        while let Some(v) = rx.recv().await {
            sum += v;
            count += 1;
        }
        (sum, count)
    });
    assert_eq!(consumer.await.unwrap(), (n * (n - 1) / 2, n));
    args.report(n).time(t0.elapsed(), n).set("channel", format!("tokio mpsc cap {cap}"))
}

async fn chan_mpmc(args: Args) -> Report {
    let each = args.n(5_000_000).div_ceil(4);
    let n = 4 * each;
    let cap = args.get("cap", 128);
    let (tx, rx) = async_channel::bounded(cap);
    let t0 = Instant::now();
    for p in 0..4 {
        let tx = tx.clone();
        tokio::spawn(async move {
            for i in 0..each {
                tx.send(p * each + i).await.unwrap();
            }
        });
    }
    drop(tx);
    let consumers: Vec<_> = (0..4)
        .map(|_| {
            let rx = rx.clone();
            tokio::spawn(async move {
                let mut sum = 0;
                while let Ok(v) = rx.recv().await {
                    sum += v;
                }
                sum
            })
        })
        .collect();
    assert_eq!(join_all(consumers).await.iter().sum::<u64>(), n * (n - 1) / 2);
    args.report(n).time(t0.elapsed(), n).set("channel", format!("async-channel cap {cap}"))
}

async fn select4(args: Args) -> Report {
    let each = args.n(1_000_000).div_ceil(4);
    let n = 4 * each;
    let (cap, channel) = channel(&args);
    let t0 = Instant::now();
    let feed = |p: u64| {
        let (tx, rx) = mpsc::channel(cap);
        tokio::spawn(async move {
            for i in 0..each {
                tx.send(p * each + i).await.unwrap();
            }
        });
        rx
    };
    let (mut a, mut b, mut c, mut d) = (feed(0), feed(1), feed(2), feed(3));
    let selector = tokio::spawn(async move {
        let (mut sum, mut count) = (0, 0);
        loop {
            sum += tokio::select! {
                Some(v) = a.recv() => v,
                Some(v) = b.recv() => v,
                Some(v) = c.recv() => v,
                Some(v) = d.recv() => v,
                else => return (sum, count),
            };
            count += 1;
        }
    });
    assert_eq!(selector.await.unwrap(), (n * (n - 1) / 2, n));
    args.report(n).time(t0.elapsed(), n).set("channel", channel)
}

// ------------------------------------------------------------------------ locks

const LOCKERS: u64 = 8;

async fn mutex(args: Args) -> Report {
    let each = args.n(2_000_000).div_ceil(LOCKERS);
    let n = each * LOCKERS;
    let total = Arc::new(Mutex::new(0));
    let t0 = Instant::now();
    let tasks = (0..LOCKERS).map(|_| {
        let total = total.clone();
        tokio::spawn(async move {
            for _ in 0..each {
                *total.lock().await += 1;
            }
        })
    });
    join_all(tasks.collect::<Vec<_>>()).await;
    let took = t0.elapsed();
    assert_eq!(*total.lock().await, n);
    args.report(n).time(took, n).set("lock", "tokio::sync::Mutex")
}

async fn mutex_std(args: Args) -> Report {
    let each = args.n(2_000_000).div_ceil(LOCKERS);
    let n = each * LOCKERS;
    let total = Arc::new(StdMutex::new(0));
    let t0 = Instant::now();
    let tasks = (0..LOCKERS).map(|_| {
        let total = total.clone();
        tokio::spawn(async move {
            for _ in 0..each {
                *total.lock().unwrap() += 1;
            }
        })
    });
    join_all(tasks.collect::<Vec<_>>()).await;
    let took = t0.elapsed();
    assert_eq!(*total.lock().unwrap(), n);
    args.report(n).time(took, n).set("lock", "std::sync::Mutex")
}

async fn rwmutex(args: Args) -> Report {
    let each = args.n(2_000_000).div_ceil(LOCKERS * 10) * 10;
    let n = each * LOCKERS;
    let total = Arc::new(RwLock::new(0));
    let t0 = Instant::now();
    let tasks = (0..LOCKERS).map(|_| {
        let total = total.clone();
        tokio::spawn(async move {
            let mut seen = 0;
            for i in 0..each {
                if i % 10 == 0 {
                    *total.write().await += 1;
                } else {
                    seen = seen.max(*total.read().await);
                }
            }
            seen
        })
    });
    let seen = join_all(tasks.collect::<Vec<_>>()).await;
    let took = t0.elapsed();
    assert_eq!(*total.read().await, n / 10);
    assert!(seen.iter().all(|s| *s <= n / 10));
    args.report(n).time(took, n).set("lock", "tokio::sync::RwLock")
}

// ------------------------------------------------------------------- whole programs

async fn fanout(args: Args) -> Report {
    const WIDTH: u64 = 16;
    let rounds = args.n(10_000);
    let count = Arc::new(AtomicU64::new(0));
    let t0 = Instant::now();
    for _ in 0..rounds {
        let tasks: [_; WIDTH as usize] = std::array::from_fn(|_| {
            let count = count.clone();
            tokio::spawn(async move {
                count.fetch_add(1, Relaxed);
            })
        });
        for task in tasks {
            task.await.unwrap();
        }
    }
    let took = t0.elapsed();
    assert_eq!(count.load(Relaxed), rounds * WIDTH);
    args.report(rounds)
        .time(took, rounds)
        .set("ns_per_task", took.as_nanos() as f64 / (rounds * WIDTH) as f64)
}

async fn skynet(args: Args) -> Report {
    fn node(
        out: mpsc::Sender<u64>,
        first: u64,
        size: u64,
        cap: usize,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if size == 1 {
                out.send(first).await.unwrap();
                return;
            }
            let (tx, mut rx) = mpsc::channel(cap);
            let child = size / 10;
            for i in 0..10 {
                tokio::spawn(node(tx.clone(), first + i * child, child, cap));
            }
            drop(tx);
            let mut sum = 0;
            while let Some(v) = rx.recv().await {
                sum += v;
            }
            out.send(sum).await.unwrap();
        })
    }
    let n = 10u64.pow(args.n(1_000_000).ilog10());
    let (cap, channel) = channel(&args);
    let t0 = Instant::now();
    let (tx, mut rx) = mpsc::channel(cap);
    tokio::spawn(node(tx, 0, n, cap));
    assert_eq!(rx.recv().await, Some(n * (n - 1) / 2));
    args.report(n).time(t0.elapsed(), n).set("channel", channel)
}

async fn ring(args: Args) -> Report {
    const SIZE: u64 = 503;
    let hops = args.n(1_000_000);
    let (cap, channel) = channel(&args);
    let (done_tx, mut done_rx) = mpsc::channel(1);
    let (first_tx, mut rx) = mpsc::channel(cap);
    for id in 0..SIZE {
        let (next_tx, next_rx) = mpsc::channel(cap);
        let tx = if id == SIZE - 1 { first_tx.clone() } else { next_tx };
        let mut input = std::mem::replace(&mut rx, next_rx);
        let done = done_tx.clone();
        tokio::spawn(async move {
            while let Some(left) = input.recv().await {
                match left {
                    0 => return done.send(id).await.unwrap(),
                    left => tx.send(left - 1).await.unwrap(),
                }
            }
        });
    }
    let t0 = Instant::now();
    first_tx.send(hops).await.unwrap();
    assert_eq!(done_rx.recv().await, Some(hops % SIZE));
    args.report(hops).time(t0.elapsed(), hops).set("channel", channel)
}

async fn sieve(args: Args) -> Report {
    let n = args.n(2000);
    let (truth, transfers) = sieve_truth(n);
    let (cap, channel) = channel(&args);
    let t0 = Instant::now();
    let (tx, mut rx) = mpsc::channel(cap);
    tokio::spawn(async move {
        let mut i = 2;
        while tx.send(i).await.is_ok() {
            i += 1;
        }
    });
    let mut prime = 0;
    for _ in 0..n {
        prime = rx.recv().await.unwrap();
        let (tx, filtered) = mpsc::channel(cap);
        let mut input = std::mem::replace(&mut rx, filtered);
        tokio::spawn(async move {
            while let Some(i) = input.recv().await {
                if i % prime != 0 && tx.send(i).await.is_err() {
                    return;
                }
            }
        });
    }
    let took = t0.elapsed();
    assert_eq!(prime, truth);
    args.report(n).time(took, transfers).set("last_prime", prime).set("channel", channel)
}

async fn forkjoin_fib(args: Args) -> Report {
    fn task(n: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
        Box::pin(async move {
            if n < 10 {
                return fib(opaque(n));
            }
            let left = tokio::spawn(task(n - 1));
            let right = task(n - 2).await;
            left.await.unwrap() + right
        })
    }
    let n = args.n(27);
    let reps = args.get("reps", 50);
    let (truth, spawns) = (fib(n), reps * fib_spawns(n));
    let t0 = Instant::now();
    for _ in 0..reps {
        assert_eq!(task(n).await, truth);
    }
    let took = t0.elapsed();
    args.report(n).time(took, spawns).set("reps", reps).set("secs_per_rep", took.as_secs_f64() / reps as f64)
}

async fn steal_uneven(args: Args) -> Report {
    let rounds = args.n(200);
    let total = Arc::new(AtomicU64::new(0));
    let t0 = Instant::now();
    let mut tasks = 0;
    for _ in 0..rounds {
        let spawners = (0..args.procs as u64).map(|p| {
            let total = total.clone();
            tokio::spawn(async move {
                let share = (0..100 + 50 * p).map(|_| {
                    let total = total.clone();
                    tokio::spawn(async move {
                        total.fetch_add(sum_to(10_000), Relaxed);
                    })
                });
                join_all(share.collect::<Vec<_>>()).await.len() as u64
            })
        });
        tasks += join_all(spawners.collect::<Vec<_>>()).await.iter().sum::<u64>();
    }
    let took = t0.elapsed();
    assert_eq!(total.load(Relaxed), tasks * 49_995_000);
    args.report(rounds).time(took, tasks).set("tasks", tasks)
}

// ----------------------------------------------------------------------- timers

async fn timers_sleep(args: Args) -> Report {
    let n = args.n(200_000);
    let whole_ms = args.text("grain", "us") == "ms";
    let (long, gated) = (args.text("span", "short") == "long", args.get("gate", 0) != 0);
    let (gate, all_here) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let here = Arc::new(AtomicU64::new(0));
    let mut t0 = Instant::now();
    let tasks: Vec<_> = (0..n)
        .map(|i| {
            let (gate, all_here, here) = (gate.clone(), all_here.clone(), here.clone());
            tokio::spawn(async move {
                let asked = if long { nth_long_sleep(i) } else { nth_sleep(i, whole_ms) };
                if gated {
                    let opened = gate.notified();
                    if here.fetch_add(1, Relaxed) == n - 1 {
                        all_here.notify_one();
                    }
                    opened.await;
                }
                let t0 = Instant::now();
                sleep(asked).await;
                late(t0, asked)
            })
        })
        .collect();
    if gated {
        all_here.notified().await;
        sleep(Duration::from_millis(200)).await;
        t0 = Instant::now();
        gate.notify_waiters();
    }
    let lateness = join_all(tasks).await;
    args.report(n).secs(t0.elapsed()).lateness(lateness)
}

async fn timer_churn(args: Args) -> Report {
    let n = args.n(2_000_000);
    let t0 = Instant::now();
    for _ in 0..n {
        let mut timer = pin!(sleep(Duration::from_secs(3600)));
        // A Sleep arms itself when it is first polled, and is stopped by its drop.
        let armed = std::future::poll_fn(|cx| std::task::Poll::Ready(timer.as_mut().poll(cx).is_pending()));
        assert!(armed.await);
    }
    args.report(n).time(t0.elapsed(), n).set("via", "Sleep, polled once, dropped")
}

async fn sleep_accuracy(args: Args) -> Report {
    let n = args.n(1000);
    let asked = Duration::from_millis(1);
    let mut lateness = Vec::with_capacity(n as usize);
    let t0 = Instant::now();
    for _ in 0..n {
        let t0 = Instant::now();
        sleep(asked).await;
        lateness.push(late(t0, asked));
    }
    args.report(n).secs(t0.elapsed()).lateness(lateness)
}

// --------------------------------------------------------------------- fairness

fn preempt(args: &Args) -> Report {
    let rt = runtime(args);
    let sleeper = |probe: &'static Probe| {
        rt.spawn(async move {
            let asked = Duration::from_millis(1);
            while !probe.over() {
                let t0 = Instant::now();
                sleep(asked).await;
                probe.woke(late(t0, asked));
            }
            probe.finish();
        });
    };
    let hog = |probe: &'static Probe| {
        rt.spawn(async move { probe.hog() });
    };
    preempt_latency(args, sleeper, hog)
}

async fn forensics(args: Args) -> Report {
    let n = args.n(1000);
    let mode: &'static str = args.text("mode", "busy").leak();
    let busy = Duration::from_millis(10);
    let iters = calibrate(busy);
    let t0 = Instant::now();
    let tasks = (0..n).map(|_| {
        tokio::spawn(async move {
            match mode {
                "busy" => drop(spin(iters)),
                "yield" => {
                    for _ in 0..100 {
                        spin(iters / 100);
                        yield_now().await;
                    }
                }
                "sleep" => sleep(busy).await,
                _ => panic!("mode is busy, yield or sleep"),
            }
            t0.elapsed().as_nanos() as u64
        })
    });
    let done = join_all(tasks.collect::<Vec<_>>()).await;
    forensics_report(&args, n, mode, t0.elapsed(), done)
}

async fn blocking_naive(args: Args) -> Report {
    blocking(args, "directly in the task", |d| tokio::spawn(async move { blocking_sleep(d) })).await
}

async fn blocking_pool(args: Args) -> Report {
    blocking(args, "spawn_blocking", |d| tokio::task::spawn_blocking(move || blocking_sleep(d))).await
}

async fn blocking(args: Args, via: &str, start: impl Fn(Duration) -> JoinHandle<()>) -> Report {
    let n = args.n(200);
    let over = Arc::new(AtomicU64::new(0));
    let ticker = tokio::spawn({
        let over = over.clone();
        async move {
            let asked = Duration::from_millis(1);
            let mut lateness = Vec::new();
            while over.load(Relaxed) == 0 {
                let t0 = Instant::now();
                sleep(asked).await;
                lateness.push(late(t0, asked));
            }
            lateness
        }
    });
    sleep(Duration::from_millis(20)).await;
    let t0 = Instant::now();
    let block = Duration::from_millis(args.get("ms", 50));
    let tasks: Vec<_> = (0..n).map(|_| start(block)).collect();
    join_all(tasks).await;
    let took = t0.elapsed();
    over.store(1, Relaxed);
    let lateness = ticker.await.unwrap();
    args.report(n).secs(took).set("ticks", lateness.len()).lateness(lateness).set("via", via)
}

fn idle(args: &Args) -> Report {
    let n = args.n(10_000);
    let rt = runtime(args);
    let notify = Arc::new(Notify::new());
    for _ in 0..n {
        let notify = notify.clone();
        rt.spawn(async move { notify.notified().await });
    }
    let report = measure_idle(args, n);
    notify.notify_waiters();
    report
}
