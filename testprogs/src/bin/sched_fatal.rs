//! Ways for a program to end, one for each run: deadlocks, panics, exits.

use std::any::Any;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::panic;
use std::process;
use std::time::Duration;

use gosched::thread::{self, Builder};
use gosched::{go, run, runtime};

/// The kinds that run as the main goroutine return from here; `plain` ones never become one.
fn main() {
    match kind().as_str() {
        "run-parks" => run(thread::park),
        "run-leaves-parked" => run_leaves_parked(),
        "plain-join" => plain_join(),
        "foreign" => foreign(),
        "foreign-ends" => foreign_ends(),
        "plain-waits" => plain_waits(),
        "setuid" => set_user(),
        _ => main_goroutine(),
    }
}

fn kind() -> String {
    env::args().nth(1).expect("a kind")
}

#[gosched::main]
fn main_goroutine() {
    match kind().as_str() {
        "parks" => thread::park(),
        "joins-parked" => drop(named("worker", thread::park).join()),
        "scope-parked" => thread::scope(|scope| {
            scope.spawn(thread::park);
            scope.spawn(thread::park);
        }),
        "sleeps" => thread::sleep(Duration::from_millis(50)),
        "sleeper-wakes-main" => sleeper_wakes_main(),
        "panic" => panic!("main panics"),
        "panic-unjoined" => panic_unjoined(),
        "panic-nested" => panic_nested(),
        "panic-parked" => panic_parked(),
        "panic-payloads" => panic_payloads(),
        "panic-abort" => drop(named("breaker", || panic!("it breaks")).join()),
        "exit" => exit(),
        "exit-small" => exit_small(),
        "returns" => returns(),
        "forgets" => {
            (0..3).for_each(|n| drop(go(move || println!("goroutine {n}"))));
            println!("main returns");
        }
        "overflow" => overflow(),
        "procs" => println!("procs={}", runtime::gomaxprocs(0)),
        "thread" => main_thread(),
        "dump" => dump(),
        "dump-states" => dump_states(),
        "dump-many" => dump_many(),
        "quit" => quit(),
        other => panic!("no kind {other}"),
    }
}

/// The signal that asks for a dump, beside goroutines in several states.
fn quit() {
    let (tell, told) = gosched::channel::bounded(0);
    named("locked", move || {
        runtime::lock_os_thread();
        tell.send(()).expect("it is received");
        thread::park();
    });
    told.recv().expect("it is sent");
    (0..3).for_each(|_| drop(go(thread::park)));
    drop(go(|| gosched::channel::never::<u8>().recv()));
    drop(go(|| -> () {
        gosched::select! {}
    }));
    // Both sides are there, and will never meet.
    let (to_nobody, from_nobody) = gosched::channel::bounded::<u8>(0);
    drop(go(move || {
        let _kept = to_nobody;
        from_nobody.recv()
    }));
    // Until all of them wait.
    let waiting = || -> usize {
        let mut text = String::new();
        runtime::dump(&mut text).expect("a String takes everything");
        ["[park", "[chan receive", "[select (no cases)"]
            .iter()
            .map(|what| text.matches(what).count())
            .sum()
    };
    while waiting() < 4 + 3 {
        thread::yield_now();
    }
    let mut text = String::new();
    runtime::dump_groups(&mut text).expect("a String takes everything");
    print!("{text}");
    // SAFETY: passes numbers only.
    unsafe { libc::raise(libc::SIGQUIT) };
}

fn named<T: Send + 'static>(
    name: &str,
    f: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    Builder::new().name(name.into()).spawn(f).expect("a goroutine")
}

/// A result is handed back beside goroutines that stay parked; nothing is wrong with that.
fn run_leaves_parked() {
    for _ in 0..20 {
        run(|| drop(go(thread::park)));
    }
    std::thread::sleep(Duration::from_millis(50));
    println!("done");
}

/// The thread that joins is nobody that the runtime knows, so it is no deadlock.
fn plain_join() {
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(100));
        println!("no verdict");
        process::exit(0)
    });
    drop(go(thread::park).join());
}

/// A plain thread might still unpark somebody: after 10 s a warning, and nothing else. That thread
/// ends the process when it has read the warning, to the end.
fn foreign() {
    exit_after("goroutine 1 ");
    run(thread::park);
}

/// A plain thread waits for a goroutine that waits for it: after 10 s a warning.
fn plain_waits() {
    exit_after("goroutine ");
    let (requests, requested) = gosched::channel::bounded::<u32>(0);
    let (answers, answer) = gosched::channel::bounded::<u32>(0);
    drop(named("worker", move || answers.send(requested.recv().unwrap_or_default()).is_ok()));
    let _ = answer.recv();
    drop(requests);
}

/// A thread that ends the process when it has read the line of a warning that begins like that.
fn exit_after(last: &'static str) {
    let (warning, standard_error) = std::io::pipe().expect("a pipe");
    // SAFETY: no memory is passed.
    let before = unsafe { libc::dup(2) };
    // SAFETY: just opened for this.
    let mut before = unsafe { std::fs::File::from_raw_fd(before) };
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::dup2(standard_error.as_raw_fd(), 2) }, 2);
    std::thread::spawn(move || {
        for line in BufReader::new(warning).lines() {
            let line = line.expect("text");
            writeln!(before, "{line}").expect("somebody reads");
            if line.starts_with(last) {
                process::exit(0);
            }
        }
    });
}

/// The thread that might ends before the warning.
fn foreign_ends() {
    std::thread::spawn(|| std::thread::sleep(Duration::from_millis(100)));
    run(thread::park);
}

/// libc makes every thread of the process change its user, and waits for all of them.
fn set_user() {
    run(|| drop(go(thread::yield_now).join()));
    // SAFETY: asks for a number.
    let user = unsafe { libc::getuid() };
    // SAFETY: asks for what is the case already.
    let result = run(move || unsafe { libc::setuid(user) });
    println!("setuid={result}");
}

fn sleeper_wakes_main() {
    let main = thread::current();
    drop(go(move || {
        thread::sleep(Duration::from_millis(100));
        main.unpark();
    }));
    thread::park();
    println!("woken");
}

fn panic_unjoined() {
    drop(named("careless", || panic!("nobody joins")));
    while runtime::panics() == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    println!("panics={}", runtime::panics());
}

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("second");
    }
}

fn panic_nested() {
    let nested = go(|| {
        let _guard = PanicsInDrop;
        panic!("first");
    });
    drop(nested.join());
}

/// Waits while it unwinds, so that other goroutines run, panic and catch in between.
struct WaitsInDrop;

impl Drop for WaitsInDrop {
    fn drop(&mut self) {
        for _ in 0..20 {
            assert!(thread::panicking());
            thread::sleep(Duration::from_micros(100));
            thread::yield_now();
            runtime::gosched();
        }
    }
}

fn panic_parked() {
    panic::set_hook(Box::new(|_| ()));
    let goroutines: Vec<_> = (0..200_usize)
        .map(|i| {
            go(move || {
                let _guard = WaitsInDrop;
                if i % 2 == 0 {
                    panic::panic_any(i);
                }
                thread::yield_now();
                assert!(!thread::panicking());
                std::mem::forget(_guard);
            })
        })
        .collect();
    let results: Vec<_> = goroutines.into_iter().map(thread::JoinHandle::join).collect();
    let payload = |e: &Box<dyn Any + Send>| e.downcast_ref::<usize>().copied();
    let right = results.iter().enumerate().all(|(i, result)| match result {
        Ok(()) => i % 2 == 1,
        Err(e) => payload(e) == Some(i),
    });
    println!("right={right} panics={}", runtime::panics());
}

fn panic_payloads() {
    panic::set_hook(Box::new(|_| ()));
    let text = go(|| panic!("text")).join().expect_err("it panics");
    println!("{:?}", text.downcast_ref::<&str>());
    let formatted =
        go(|| panic!("formatted {}", std::hint::black_box(7))).join().expect_err("it panics");
    println!("{:?}", formatted.downcast_ref::<String>());
    let value = go(|| panic::panic_any(vec![1, 2])).join().expect_err("it panics");
    println!("{:?}", value.downcast_ref::<Vec<i32>>());
}

extern "C" fn at_exit() {
    println!("at exit");
}

fn exit() {
    // SAFETY: a function without preconditions.
    unsafe { libc::atexit(at_exit) };
    drop(go(|| process::exit(5)));
    thread::park();
}

fn exit_small() {
    // SAFETY: as above.
    unsafe { libc::atexit(at_exit) };
    let small = Builder::new().stack_size(16 << 10).spawn(|| process::exit(6));
    drop(small);
    thread::park();
}

/// Others run on, busy or not; the process ends all the same.
fn returns() {
    for i in 0..100 {
        go(move || {
            loop {
                if i % 2 == 0 {
                    thread::sleep(Duration::from_millis(1))
                } else {
                    thread::yield_now()
                }
            }
        });
    }
    thread::sleep(Duration::from_millis(5));
    println!("main returns");
}

#[expect(unconditional_recursion, reason = "that is the point")]
fn deeper(n: usize) -> usize {
    let room = [n; 64];
    deeper(std::hint::black_box(n + 1)) + std::hint::black_box(room)[n % 64]
}

fn overflow() {
    for _ in 0..3 {
        drop(named("bystander", thread::park));
    }
    dump_with(&[("[park]:", 3)]);
    let deep = named("digger", || {
        println!("goroutine {}", runtime::goroutine_id().unwrap_or(0));
        deeper(0)
    });
    drop(deep.join());
}

fn main_thread() {
    // SAFETY: asks for a number.
    let thread = unsafe { libc::gettid() };
    let is_first = u32::try_from(thread) == Ok(process::id());
    println!("first={is_first} goroutine={:?}", runtime::goroutine_id());
    println!("name={:?}", thread::current().name());
}

fn dump() {
    drop(named("sleeper", || thread::sleep(Duration::from_secs(3600))));
    drop(go(thread::park));
    print!("{}", dump_with(&[("[sleep]:", 1), ("[park]:", 1)]));
}

/// Two goroutines compute beside this one on two processors, one does where it can't be moved, and one is
/// in a call: sooner or later one of the first runs on the other thread, one was stopped where it
/// computes, and the third is frozen with its thread.
fn dump_states() {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    drop(named("in call", move || blocks_in_a_call(&ended)));
    (0..2).for_each(|_| drop(named("computes", computes_for_ever)));
    drop(named("stays", || on_a_foreign_stack(computes_there)));
    let wanted: [(&str, &[&str]); 4] = [
        ("\"in call\" [syscall", &["sched_fatal::blocks_in_a_call(...)"]),
        ("\"computes\" [running", &["\tgoroutine running on other thread; stack unavailable"]),
        ("\"computes\" [runnable", &["sched_fatal::computes_for_ever(...)"]),
        // Where it was stopped, by which function of its own.
        ("\"stays\" [runnable, locked to thread", &["sched_fatal::computes_there(...)"]),
    ];
    let mut seen = [false; 4];
    while seen.contains(&false) {
        let mut text = String::new();
        runtime::dump(&mut text).expect("a String takes everything");
        for part in text.split("\n\n") {
            for ((head, inside), seen) in wanted.iter().zip(&mut seen) {
                let is_one = part.contains(head) && inside.iter().all(|words| part.contains(words));
                *seen |= is_one;
            }
        }
        thread::yield_now();
    }
    drop(end);
    println!("seen=4\nfrozen={}", runtime::preemptions().frozen);
}

#[inline(never)]
fn blocks_in_a_call(ended: &std::sync::mpsc::Receiver<()>) {
    let _ = gosched::blocking(|| ended.recv());
    std::hint::black_box(ended);
}

/// Runs `f` where the runtime does not know the stack, so that it can't go on on another thread.
fn on_a_foreign_stack(f: extern "C" fn()) {
    let mut stack = vec![0_u8; 256 << 10];
    // SAFETY: contexts are plain data; `getcontext` fills them.
    let mut there: libc::ucontext_t = unsafe { std::mem::zeroed() };
    let mut back = there;
    // SAFETY: fills the context, which is ours.
    assert_eq!(unsafe { libc::getcontext(&mut there) }, 0);
    there.uc_stack.ss_sp = stack.as_mut_ptr().cast();
    there.uc_stack.ss_size = stack.len();
    there.uc_link = &mut back;
    // SAFETY: an initialised context with a stack of its own; the function takes no arguments.
    unsafe { libc::makecontext(&mut there, f, 0) };
    // SAFETY: both contexts and the stack outlive the call, which returns when `f` does.
    assert_eq!(unsafe { libc::swapcontext(&mut back, &there) }, 0);
}

#[inline(never)]
extern "C" fn computes_there() {
    loop {
        std::hint::black_box(2);
    }
}

#[inline(never)]
fn computes_for_ever() {
    loop {
        std::hint::black_box(1);
    }
}

/// How long a dump of 100,000 takes, in milliseconds; nobody else computes.
fn dump_many() {
    const MANY: usize = 100_000;
    (0..MANY).for_each(|_| drop(go(thread::park)));
    let all_wait = || {
        let mut text = String::new();
        runtime::dump_groups(&mut text).expect("a String takes everything");
        text.contains("100000 goroutines [park]:")
    };
    while !all_wait() {
        thread::yield_now();
    }
    let (mut text, begun) = (String::new(), std::time::Instant::now());
    runtime::dump(&mut text).expect("a String takes everything");
    println!("ms={}", begun.elapsed().as_millis());
    println!("dumped={}", text.matches("[park]:\ncreated by ").count());
}

/// A dump, once so many goroutines are in each of these states.
fn dump_with(states: &[(&str, usize)]) -> String {
    loop {
        let mut text = String::new();
        runtime::dump(&mut text).expect("a String takes everything");
        if states.iter().all(|(state, count)| text.matches(state).count() == *count) {
            return text;
        }
        thread::yield_now();
    }
}
