//! Figures of the ground floor: what a switch costs, what making a fiber costs, what one weighs.
//!
//! ```text
//! cargo bench -p gosched-fiber --bench fiber                   every figure, one process a kind
//! cargo bench -p gosched-fiber --bench fiber -- switch own     one of them
//! cargo bench -p gosched-fiber --bench fiber -- memory 1000000 own
//! ```
//!
//! Times are the best and the median of several runs: the best says what the machine can do, the
//! distance between the two how busy it was.

use gosched_fiber::arch::{self, Context};
use gosched_fiber::host::{self, Host};
use gosched_fiber::stack::Class;
use gosched_fiber::tls::{self, Kind};
use gosched_fiber::{Fiber, pool};
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => return every_figure(),
        ["switch", kind] => switch_figures(kind_of(kind)),
        ["make", kind] => make_figures(kind_of(kind)),
        ["memory", count, kind] => memory_figures(count, kind_of(kind), nothing),
        ["memory", count, kind, "allocating"] => memory_figures(count, kind_of(kind), allocate),
        _ => {
            eprintln!("fiber: [switch KIND | make KIND | memory COUNT KIND [allocating]]");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Each in a process of its own: the kind is chosen once.
fn every_figure() -> ExitCode {
    let all = [
        "switch shared",
        "switch own",
        "make own",
        "make dead-thread",
        "memory 1000000 own",
        "memory 100000 own allocating",
        "memory 1000000 shared",
    ];
    let exe = std::env::current_exe().expect("the path of this program");
    let good = all.iter().filter(|line| {
        println!("-- {line}");
        let status = Command::new(&exe).args(line.split(' ')).status();
        status.is_ok_and(|s| s.success())
    });
    if good.count() == all.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn kind_of(name: &str) -> Kind {
    match name {
        "own" => Kind::Template,
        "dead-thread" => Kind::DeadThread,
        "shared" => Kind::Shared,
        _ => panic!("no kind is called {name}: own, dead-thread, shared"),
    }
}

/// Chooses the kind and makes this thread a host for good.
fn start(kind: Kind) -> &'static Host {
    assert_eq!(tls::init(Some(kind), None), kind, "{:?}", tls::report());
    let host = Box::leak(Box::new(Host::unbound()));
    // SAFETY: leaked, and the main thread has no host yet.
    unsafe { host::bind(host) };
    host
}

const RUNS: usize = 11;

/// Prints nanoseconds an operation: best and median.
fn report(what: &str, operations: usize, mut run: impl FnMut() -> Duration) -> f64 {
    let mut ns: Vec<f64> = (0..RUNS).map(|_| run().as_nanos() as f64 / operations as f64).collect();
    ns.sort_by(f64::total_cmp);
    println!("{what:<44} {:>9.2} ns best {:>9.2} ns median", ns[0], ns[RUNS / 2]);
    ns[0]
}

fn timed(operations: usize, mut f: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..operations {
        f();
    }
    start.elapsed()
}

/// A fiber and the two contexts that go with it.
struct Runner {
    fiber: Option<Fiber>,
    inner: Context,
    outer: Context,
    work: fn(),
}

impl Runner {
    fn new(work: fn()) -> Runner {
        Runner { fiber: None, inner: Context::empty(), outer: Context::empty(), work }
    }

    /// Gives it a fiber, which is to begin `entry`.
    fn prepare(&mut self, fiber: Fiber, entry: unsafe extern "C" fn(*mut (), usize) -> !) {
        let data = (&raw mut *self).cast();
        // SAFETY: the fiber is ours and nothing runs on it.
        unsafe { fiber.prepare(&mut self.inner, entry, data) };
        self.fiber = Some(fiber);
        self.outer.set_fs(host::current_block());
        if tls::kind() == Kind::Shared {
            self.inner.set_fs(host::current_block());
        }
    }

    /// Runs the fiber until it leaves.
    #[inline(always)]
    fn enter(&mut self, host: &Host, own: bool) {
        let (from, to) = (&raw mut self.outer, &raw const self.inner);
        if own {
            // SAFETY: the fiber's block, which nobody else has.
            unsafe { host::load_block(host, self.inner.fs()) };
        }
        // SAFETY: prepared, or saved when it left.
        unsafe { arch::switch(from, to, 0) };
    }

    /// Leaves the fiber.
    ///
    /// # Safety
    /// * Called on the fiber.
    #[inline(always)]
    unsafe fn leave(&mut self, own: bool) {
        let (from, to) = (&raw mut self.inner, &raw const self.outer);
        if own {
            // SAFETY: the thread's own block.
            unsafe { host::load_block(host::current(), self.outer.fs()) };
        }
        // SAFETY: saved when it was entered.
        unsafe { arch::switch(from, to, 0) };
    }
}

/// # Safety
/// * The first frame of a runner's fiber, of a kind without blocks.
unsafe extern "C" fn bounce_shared(data: *mut (), _: usize) -> ! {
    let runner = data.cast::<Runner>();
    loop {
        // SAFETY: on the fiber; the runner stays where it is.
        let runner = unsafe { &mut *runner };
        // SAFETY: as above.
        unsafe { runner.leave(false) };
    }
}

/// # Safety
/// * The first frame of a runner's fiber, of a kind with blocks.
unsafe extern "C" fn bounce_own(data: *mut (), _: usize) -> ! {
    let runner = data.cast::<Runner>();
    loop {
        // SAFETY: on the fiber; the runner stays where it is.
        let runner = unsafe { &mut *runner };
        // SAFETY: as above.
        unsafe { runner.leave(true) };
    }
}

/// # Safety
/// * The first frame of a runner's fiber.
unsafe extern "C" fn work_once(data: *mut (), _: usize) -> ! {
    // SAFETY: the runner stays where it is.
    let runner = unsafe { &mut *data.cast::<Runner>() };
    let own = tls::kind().has_blocks();
    (runner.work)();
    // SAFETY: on the fiber.
    unsafe { runner.leave(own) };
    if let Some(fiber) = &runner.fiber {
        // SAFETY: on the fiber, which has nothing left to do.
        unsafe { fiber.finish() };
    }
    // SAFETY: on the fiber.
    unsafe { runner.leave(own) };
    unreachable!("resumed after its end")
}

fn switch_figures(kind: Kind) {
    const COUNT: usize = 1_000_000;
    let host = start(kind);
    let mut runner = Runner::new(nothing);
    let fiber = Fiber::make(Class::DEFAULT).expect("memory");
    if kind == Kind::Shared {
        runner.prepare(fiber, bounce_shared);
        report("switch, shared", 2 * COUNT, || timed(COUNT, || runner.enter(host, false)));
        return;
    }
    runner.prepare(fiber, bounce_own);
    let block = host::current_block();
    let raw = report("wrfsbase alone", COUNT, || {
        timed(COUNT, || {
            // SAFETY: the thread's own block, which is loaded already.
            unsafe { arch::set_fs_base(black_box(block)) };
        })
    });
    let own = report("switch, own", 2 * COUNT, || timed(COUNT, || runner.enter(host, true)));
    println!("{:<44} {:>9.2} ns", "switch, own, beyond wrfsbase", own - raw);
}

fn make_figures(kind: Kind) {
    let host = start(kind);
    let count = if kind == Kind::DeadThread { 200 } else { 2000 };
    let mut made = Vec::with_capacity(RUNS * count);
    report("make a fiber on a fresh slot", count, || {
        timed(count, || made.push(Fiber::make(Class::DEFAULT).expect("memory")))
    });
    let one = made.pop().expect("made above");
    report("renew", 100_000, || {
        timed(100_000, || {
            // SAFETY: nothing runs on it.
            assert!(unsafe { one.renew() });
        })
    });
    let mut hot = Some(one);
    report("give and take, hot", 100_000, || {
        timed(100_000, || {
            // SAFETY: nothing ever ran on it.
            hot.take().into_iter().for_each(|fiber| unsafe { pool::give(fiber) });
            hot = pool::take(Class::DEFAULT);
        })
    });
    let mut runner = Runner::new(nothing);
    report("take, run, finish, renew, give", 100_000, || {
        timed(100_000, || {
            let fiber = pool::take_or_make(Class::DEFAULT).expect("memory");
            runner.prepare(fiber, work_once);
            runner.enter(host, true);
            runner.enter(host, true);
            let fiber = runner.fiber.take().expect("prepared above");
            // SAFETY: finished by `work_once`.
            assert!(unsafe { fiber.renew() });
            // SAFETY: renewed.
            unsafe { pool::give(fiber) };
        })
    });
    if kind == Kind::DeadThread {
        return;
    }
    report("destroy", count - 1, || {
        let some = made.split_off(made.len().saturating_sub(count - 1));
        let start = Instant::now();
        for fiber in some {
            // SAFETY: nothing ever ran on it. Its slot is not released.
            let _remains = unsafe { fiber.destroy() };
        }
        start.elapsed()
    });
}

fn nothing() {}

fn allocate() {
    let text = format!("{:?} {}", black_box([1, 2, 3]), black_box(7));
    let list: Vec<u64> = (0..black_box(20)).collect();
    black_box((&text, &list));
}

/// Resident memory and page tables of this process, in bytes.
fn resident() -> [usize; 2] {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    ["VmRSS:", "VmPTE:"].map(|name| {
        let line = status.lines().find(|l| l.starts_with(name));
        let kib = line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse().ok());
        kib.unwrap_or(0) * 1024
    })
}

fn memory_figures(count: &str, kind: Kind, work: fn()) {
    let count: usize = count.parse().expect("a number of fibers");
    let host = start(kind);
    let own = kind.has_blocks();
    let mut runners: Vec<Runner> = (0..count).map(|_| Runner::new(work)).collect();
    pool::start().expect("a thread");
    std::thread::sleep(Duration::from_millis(50));
    let [before, tables_before] = resident();
    let start = Instant::now();
    for runner in &mut runners {
        let fiber = pool::take_or_make(Class::DEFAULT).expect("memory");
        runner.prepare(fiber, work_once);
        runner.enter(host, own);
    }
    let took = start.elapsed();
    let [full, tables] = resident();
    println!("{count} suspended fibers made in {took:.2?}");
    print_each("resident", full - before, count);
    print_each("page tables", tables - tables_before, count);
    let start = Instant::now();
    for runner in &mut runners {
        runner.enter(host, own);
        let fiber = runner.fiber.take().expect("prepared above");
        // SAFETY: finished by `work_once`.
        if unsafe { fiber.renew() } {
            // SAFETY: renewed.
            unsafe { pool::give(fiber) };
        } else {
            // SAFETY: finished.
            unsafe { pool::discard(fiber) };
        }
    }
    println!("ended in {:.2?}", start.elapsed());
    let end = Instant::now();
    for half_seconds in 1..=6 {
        std::thread::sleep(end + Duration::from_millis(500 * half_seconds) - Instant::now());
        let share = 100.0 * (resident()[0] - before) as f64 / (full - before) as f64;
        println!("{:>4.1} s later: {share:.0} % resident", half_seconds as f64 / 2.0);
    }
}

fn print_each(what: &str, bytes: usize, count: usize) {
    println!("{what:<44} {:>9.2} KiB a fiber", bytes as f64 / count as f64 / 1024.0);
}
