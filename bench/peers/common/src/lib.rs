//! What the Rust peers share: the command line, the JSON line, statistics,
//! resource figures, calibrated CPU work, and the blocking echo/HTTP handlers.

pub mod net;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::exit;
use std::str::FromStr;
use std::time::{Duration, Instant};

// ---------------------------------------------------------------- command line

/// `BIN BENCH [--n N] [--procs P] [key=value ...]`; `--key value` sets any key.
#[derive(Clone, Debug)]
pub struct Args {
    pub peer: &'static str,
    pub bench: String,
    pub procs: usize,
    opts: BTreeMap<String, String>,
}

pub type Bench = (&'static str, fn(&Args) -> Report);

fn usage(msg: &str) -> ! {
    eprintln!("{msg}\nusage: BIN BENCH|list [--n N] [--procs P] [key=value ...]");
    exit(2)
}

impl Args {
    pub fn parse(peer: &'static str) -> Args {
        let mut words = std::env::args().skip(1);
        let bench = words.next().unwrap_or_else(|| usage("no bench named"));
        Args::options(peer, bench, words)
    }

    /// For a program that takes only `--key value` or `key=value`.
    pub fn options(peer: &'static str, bench: String, mut words: impl Iterator<Item = String>) -> Args {
        let mut opts = BTreeMap::new();
        while let Some(word) = words.next() {
            let (key, value) = match (word.strip_prefix("--"), word.split_once('=')) {
                (_, Some((k, v))) => (k.trim_start_matches("--").to_string(), v.to_string()),
                (Some(k), None) => match words.next() {
                    Some(v) => (k.to_string(), v),
                    None => usage(&format!("--{k} wants a value")),
                },
                (None, None) => usage(&format!("what is {word:?}?")),
            };
            opts.insert(key, value);
        }
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
        let from_env = std::env::var("PROCS").ok().and_then(|v| v.parse().ok());
        let mut args = Args { peer, bench, procs: 0, opts };
        args.procs = args.get("procs", from_env.unwrap_or(cpus)).max(1);
        args
    }

    /// The value of `key`, or `default` when it was not given.
    pub fn get<T: FromStr>(&self, key: &str, default: T) -> T {
        match self.opts.get(key) {
            None => default,
            Some(v) => match v.parse().or_else(|_| v.replace('_', "").parse()) {
                Ok(v) => v,
                Err(_) => usage(&format!("bad value for {key}: {v:?}")),
            },
        }
    }

    pub fn text(&self, key: &str, default: &str) -> String {
        self.get(key, default.to_string())
    }

    pub fn n(&self, default: u64) -> u64 {
        self.get("n", default).max(1)
    }

    /// For benches that are defined on one processor.
    pub fn on_one_proc(&self) -> Args {
        Args { procs: 1, ..self.clone() }
    }

    pub fn report(&self, n: u64) -> Report {
        Report::default()
            .set("impl", self.peer)
            .set("bench", self.bench.as_str())
            .set("procs", self.procs)
            .set("n", n)
    }

    pub fn skip(&self, why: &str) -> Report {
        Report::default().set("impl", self.peer).set("bench", self.bench.as_str()).set("skipped", why)
    }

    /// Whether `key` was given.
    pub fn has(&self, key: &str) -> bool {
        self.opts.contains_key(key)
    }

    /// Runs the bench that the command line names and prints its line.
    pub fn dispatch(&self, benches: &[Bench]) {
        if self.bench == "list" {
            benches.iter().for_each(|(name, _)| println!("{name}"));
            return;
        }
        match benches.iter().find(|(name, _)| *name == self.bench) {
            Some((_, run)) => run(self).print(),
            None => usage(&format!("{} has no bench {:?}", self.peer, self.bench)),
        }
    }
}

// ------------------------------------------------------------------- JSON line

pub enum Json {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
}

macro_rules! json_from {
    ($($t:ty => $make:expr),+ $(,)?) => {
        $(impl From<$t> for Json { fn from(v: $t) -> Json { $make(v) } })+
    };
}
json_from! {
    u16 => |v| Json::Int(v as i64),
    u64 => |v| Json::Int(v as i64),
    i64 => Json::Int,
    usize => |v| Json::Int(v as i64),
    f64 => Json::Float,
    bool => Json::Bool,
    &str => |v: &str| Json::Text(v.to_string()),
    String => Json::Text,
}

/// The figures of one run, printed as one JSON line.
#[derive(Default)]
pub struct Report(Vec<(String, Json)>);

impl Report {
    pub fn set(mut self, key: &str, value: impl Into<Json>) -> Report {
        self.0.push((key.to_string(), value.into()));
        self
    }

    /// `secs`, and `ns_per_op` over `ops` operations.
    pub fn time(self, took: Duration, ops: u64) -> Report {
        self.set("ns_per_op", took.as_nanos() as f64 / ops.max(1) as f64).secs(took)
    }

    pub fn secs(self, took: Duration) -> Report {
        self.set("secs", took.as_secs_f64())
    }

    /// p50, p99 and max of lateness samples (ns), in µs.
    pub fn lateness(self, mut ns: Vec<u64>) -> Report {
        ns.sort_unstable();
        let us = |p| percentile(&ns, p) / 1e3;
        let (p50, p99, max) = (us(0.50), us(0.99), us(1.0));
        self.set("late_p50_us", p50).set("late_p99_us", p99).set("late_max_us", max)
    }

    /// rtt_p50_us, rtt_p99_us and rtt_max_us of round trips.
    pub fn round_trips(self, mut ns: Vec<u64>) -> Report {
        ns.sort_unstable();
        let at = |p| percentile(&ns, p) / 1e3;
        self.set("rtt_p50_us", at(0.5)).set("rtt_p99_us", at(0.99)).set("rtt_max_us", at(1.0))
    }

    pub fn print(self) {
        let skipped = self.0.iter().any(|(key, _)| key == "skipped");
        let report = if skipped { self } else { self.set("max_rss_kb", peak_rss_kb()) };
        let mut line = String::from("{");
        for (key, value) in report.0 {
            let sep = if line.len() > 1 { "," } else { "" };
            let _ = match value {
                Json::Int(v) => write!(line, "{sep}\"{key}\":{v}"),
                Json::Float(v) if v.abs() < 1.0 => write!(line, "{sep}\"{key}\":{v:.6}"),
                Json::Float(v) => write!(line, "{sep}\"{key}\":{v:.3}"),
                Json::Bool(v) => write!(line, "{sep}\"{key}\":{v}"),
                Json::Text(v) => write!(line, "{sep}\"{key}\":\"{}\"", escape(&v)),
            };
        }
        println!("{line}}}");
    }
}

fn escape(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c {
            '"' | '\\' => vec!['\\', c],
            c if c < ' ' => vec![' '],
            c => vec![c],
        })
        .collect()
}

// ------------------------------------------------------------------ statistics

/// Nearest-rank percentile of sorted samples; 0 when there are none.
pub fn percentile(sorted: &[u64], p: f64) -> f64 {
    let rank = (p * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).map_or(0.0, |v| *v as f64)
}

/// How much longer than `asked` it has been since `t0`, in ns.
pub fn late(t0: Instant, asked: Duration) -> u64 {
    t0.elapsed().saturating_sub(asked).as_nanos() as u64
}

/// Well mixed bits of `i` (splitmix64), so that every peer sees the same "random" numbers.
pub fn mix(i: u64) -> u64 {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The i-th sleep of `timers_sleep`: 1..100 ms, on whole µs, or on whole ms with `grain=ms`.
pub fn nth_sleep(i: u64, whole_ms: bool) -> Duration {
    if whole_ms {
        Duration::from_millis(1 + mix(i) % 100)
    } else {
        Duration::from_micros(1_000 + mix(i) % 99_001)
    }
}

/// 1 to 10 s.
pub fn nth_long_sleep(i: u64) -> Duration {
    Duration::from_micros(1_000_000 + mix(i) % 9_000_001)
}

// -------------------------------------------------------------------- resources

#[derive(Clone, Copy)]
pub struct Usage {
    pub cpu: Duration,
    pub voluntary: i64,
    pub involuntary: i64,
}

impl Usage {
    pub fn now() -> Usage {
        // SAFETY: a struct of numbers.
        let mut ru = unsafe { std::mem::zeroed::<libc::rusage>() };
        // SAFETY: the kernel writes the struct, which is ours.
        assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut ru) }, 0);
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
        Usage {
            cpu: time(ru.ru_utime) + time(ru.ru_stime),
            voluntary: ru.ru_nvcsw,
            involuntary: ru.ru_nivcsw,
        }
    }
}

/// Resident bytes of this process now.
pub fn rss() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("/proc/self/statm");
    let pages: u64 = statm.split(' ').nth(1).and_then(|v| v.parse().ok()).expect("rss");
    pages * 4096
}

/// Peak resident kB. (Not getrusage's ru_maxrss: that one starts at the parent's at exec.)
pub fn peak_rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc/self/status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    peak.trim().trim_end_matches(" kB").parse().expect("VmHWM")
}

/// The most tasks that may be alive when each needs two mappings (a stack and its guard).
pub fn max_mapped_stacks() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    let maps: u64 = text.trim().parse().unwrap_or(65_530);
    maps.saturating_sub(1_000) / 2
}

/// `idle`: what the process uses while the calling OS thread sleeps.
pub fn measure_idle(args: &Args, tasks: u64) -> Report {
    let asleep = Duration::from_secs_f64(args.get("secs", 3.0));
    std::thread::sleep(Duration::from_millis(200)); // let the tasks settle
    let (t0, before) = (Instant::now(), Usage::now());
    std::thread::sleep(asleep);
    let (took, after) = (t0.elapsed(), Usage::now());
    args.report(tasks)
        .secs(took)
        .set("cpu_ms", (after.cpu - before.cpu).as_secs_f64() * 1e3)
        .set("ctx_voluntary", after.voluntary - before.voluntary)
        .set("ctx_involuntary", after.involuntary - before.involuntary)
}

// --------------------------------------------------------------------- CPU work

/// Returns `x`, but the optimiser may not know that. Unlike `black_box` it stays in a register.
#[inline(always)]
pub fn opaque(mut x: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: no instruction at all.
    unsafe {
        core::arch::asm!("/* {0} */", inout(reg) x, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        x = std::hint::black_box(x);
    }
    x
}

/// 0 + 1 + ... + (n - 1), one addition at a time.
pub fn sum_to(n: u64) -> u64 {
    let mut sum = 0;
    for i in 0..n {
        sum = opaque(sum + i);
    }
    sum
}

/// Pure arithmetic that never yields.
pub fn spin(iters: u64) -> u64 {
    let mut x = 1;
    for _ in 0..iters {
        x = opaque(x * 5 % 1_000_003);
    }
    std::hint::black_box(x)
}

/// How many `spin` iterations take `d` of CPU on this machine: the best of ten tries.
pub fn calibrate(d: Duration) -> u64 {
    const TRY: u64 = 500_000;
    let best = (0..10)
        .map(|_| {
            let t0 = Instant::now();
            spin(TRY);
            t0.elapsed()
        })
        .min()
        .unwrap();
    (TRY as f64 * d.as_secs_f64() / best.as_secs_f64()) as u64
}

/// A sleep that blocks the calling OS thread in the kernel.
pub fn blocking_sleep(d: Duration) {
    let ts = libc::timespec { tv_sec: d.as_secs() as i64, tv_nsec: d.subsec_nanos() as i64 };
    // SAFETY: the kernel reads the time, which is ours.
    assert_eq!(unsafe { libc::nanosleep(&ts, std::ptr::null_mut()) }, 0);
}

/// `syscall_overhead` for peers that have no syscall protocol of their own.
pub fn getpid_loop(args: &Args) -> Report {
    let n = args.n(2_000_000);
    let want = std::process::id() as i64;
    let t0 = Instant::now();
    for _ in 0..n {
        // SAFETY: no memory is passed.
        assert_eq!(unsafe { libc::syscall(libc::SYS_getpid) }, want);
    }
    args.report(n).time(t0.elapsed(), n).set("via", "direct")
}

// ------------------------------------------------- expected results of the benches

pub fn fib(n: u64) -> u64 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

/// How many tasks `forkjoin_fib` spawns for fib(n).
pub fn fib_spawns(n: u64) -> u64 {
    if n < 10 { 0 } else { 1 + fib_spawns(n - 1) + fib_spawns(n - 2) }
}

/// The n-th prime, and the number of channel transfers that a filter chain needs to find it.
pub fn sieve_truth(n: u64) -> (u64, u64) {
    let mut primes: Vec<u64> = Vec::new();
    let (mut transfers, mut i) = (0, 1);
    while (primes.len() as u64) < n {
        i += 1;
        match primes.iter().position(|p| i % p == 0) {
            Some(k) => transfers += k as u64 + 1,
            None => {
                primes.push(i);
                transfers += primes.len() as u64;
            }
        }
    }
    (*primes.last().unwrap(), transfers)
}

/// The figures of `forensics` from each task's completion time (ns since the start).
pub fn forensics_report(args: &Args, n: u64, mode: &str, took: Duration, mut done: Vec<u64>) -> Report {
    assert_eq!(done.len() as u64, n);
    done.sort_unstable();
    let ms = |p| percentile(&done, p) / 1e6;
    args.report(n)
        .secs(took)
        .set("mode", mode)
        .set("done_p50_ms", ms(0.50))
        .set("done_p90_ms", ms(0.90))
        .set("done_p99_ms", ms(0.99))
        .set("done_max_ms", ms(1.0))
}

/// `preempt_latency`, seen from an OS thread outside the runtime under test.
///
/// `start_sleeper(probe)` must start a task that calls `probe.woke(lateness)` after each
/// 1 ms sleep until `probe.over()`, then `probe.finish()`; `start_hog(probe)` one that
/// calls `probe.hog()`.
pub fn preempt_latency(
    args: &Args,
    start_sleeper: impl Fn(&'static Probe),
    start_hog: impl Fn(&'static Probe),
) -> Report {
    let window = Duration::from_secs_f64(args.get("secs", 3.0));
    let hogs = args.get("hogs", 2 * args.procs as u64);
    let probe: &'static Probe = Box::leak(Box::default());
    start_sleeper(probe);
    std::thread::sleep(Duration::from_millis(100));
    let idle_wakes = std::mem::take(&mut *probe.late.lock().unwrap()).len();
    let t0 = Instant::now();
    (0..hogs).for_each(|_| start_hog(probe));
    std::thread::sleep(window);
    probe.over.store(true, Relaxed);
    let took = t0.elapsed();
    let patience = Instant::now();
    while !probe.finished.load(Relaxed) && patience.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let hung = !probe.finished.load(Relaxed);
    let mut late = probe.late.lock().unwrap().clone();
    let woken = late.len();
    if hung {
        late.push(took.as_nanos() as u64);
    }
    let worst = late.iter().copied().max().unwrap_or(0);
    let report = args
        .report(hogs)
        .secs(took)
        .set("wakeups", woken)
        .set("wakeups_before_hogs", idle_wakes)
        .set("hog_chunks", probe.chunks.load(Relaxed))
        .lateness(late)
        .set("starved", worst >= 1_000_000_000.min(window.as_nanos() as u64 / 2));
    if hung { report.set("hung", true) } else { report }
}

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

#[derive(Default)]
pub struct Probe {
    late: Mutex<Vec<u64>>,
    over: AtomicBool,
    finished: AtomicBool,
    chunks: AtomicU64,
}

impl Probe {
    pub fn over(&self) -> bool {
        self.over.load(Relaxed)
    }
    pub fn woke(&self, late: u64) {
        self.late.lock().unwrap().push(late);
    }
    pub fn finish(&self) {
        self.finished.store(true, Relaxed);
    }
    /// Arithmetic until the end; the flag is only read, about every 100 µs.
    pub fn hog(&self) {
        while !self.over() {
            spin(25_000);
            self.chunks.fetch_add(1, Relaxed);
        }
    }
}
