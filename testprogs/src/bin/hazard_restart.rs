//! Sleeps in the kernel while a helper stops and continues the process as fast as it can: the
//! kernel then goes on with `restart_syscall`, whose state belongs to its thread. Prints
//! `key=value` lines.

use gosched::{go, run, runtime};
use std::env;
use std::io::{BufRead, BufReader, Error, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const ASKED: Duration = Duration::from_millis(10);
const SLEEPERS: usize = 12;
/// Of each, and more until the process was stopped often enough, and somebody's processor handed on.
const SLEEPS_MIN: usize = 25;
const STOPS_MIN: u64 = 1_001;

static EARLY: AtomicU64 = AtomicU64::new(0);
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);
static TO_THE_END: AtomicU64 = AtomicU64::new(0);
static SLEEPS: AtomicU64 = AtomicU64::new(0);
/// Whether the helper has said that it has stopped this process often enough.
static IS_ENOUGH: AtomicBool = AtomicBool::new(false);

fn main() {
    if let Some(process) = env::args().nth(1) {
        return storm(process.parse().expect("a process"));
    }
    let mut helper = start_helper();
    let mut out = BufReader::new(helper.stdout.take().expect("piped"));
    let stops = std::thread::spawn(move || {
        let mut line = String::new();
        out.read_line(&mut line).expect("text");
        IS_ENOUGH.store(true, Relaxed);
        line.clear();
        out.read_line(&mut line).expect("text");
        line.trim().parse::<u64>().expect("a number")
    });
    gosched::Config::new().slice(Duration::from_micros(100)).start().expect("it is the first");
    run(|| {
        let sleepers: Vec<_> = (0..SLEEPERS).map(|i| go(move || sleep_often(i))).collect();
        sleepers.into_iter().for_each(|sleeper| sleeper.join().expect("no panic"));
    });
    // It ends with its standard input.
    drop(helper.stdin.take());
    println!("stops={}", stops.join().expect("no panic"));
    helper.wait().expect("it ends");
    println!("sleeps={}", SLEEPS.load(Relaxed));
    println!("early={}", EARLY.load(Relaxed));
    println!("interrupted={}", INTERRUPTED.load(Relaxed));
    println!("to_the_end={}", TO_THE_END.load(Relaxed));
    println!("undeclared_hand_offs={}", runtime::counters().undeclared_hand_offs);
}

fn sleep_often(i: usize) {
    let is_enough = || IS_ENOUGH.load(Relaxed) && runtime::counters().undeclared_hand_offs > 0;
    for _ in (0..).take_while(|n| *n < SLEEPS_MIN || !is_enough()) {
        SLEEPS.fetch_add(1, Relaxed);
        let start = Instant::now();
        let result = if i.is_multiple_of(2) { nanosleep() } else { poll() };
        if result == 0 {
            TO_THE_END.fetch_add(1, Relaxed);
            EARLY.fetch_add(u64::from(start.elapsed() < ASKED), Relaxed);
        } else {
            assert_eq!(Error::last_os_error().raw_os_error(), Some(libc::EINTR));
            INTERRUPTED.fetch_add(1, Relaxed);
        }
    }
}

fn nanosleep() -> i32 {
    let time = libc::timespec { tv_sec: 0, tv_nsec: i64::from(ASKED.subsec_nanos()) };
    // SAFETY: a time of ours.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) }
}

fn poll() -> i32 {
    // SAFETY: no record is passed.
    unsafe { libc::poll(std::ptr::null_mut(), 0, ASKED.as_millis() as i32) }
}

fn start_helper() -> Child {
    let mut command = Command::new(env::current_exe().expect("known"));
    command.arg(std::process::id().to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("it starts again")
}

/// Stops and continues the process until standard input ends. Says when it has done so often enough,
/// and at the end how often.
fn storm(process: i32) {
    let over = std::thread::spawn(|| std::io::stdin().read(&mut [0]));
    let mut stops = 0_u64;
    while !over.is_finished() {
        // SAFETY: no memory is passed.
        let stopped = unsafe { libc::kill(process, libc::SIGSTOP) };
        // SAFETY: as above.
        let continued = unsafe { libc::kill(process, libc::SIGCONT) };
        if (stopped, continued) != (0, 0) {
            break;
        }
        stops += 1;
        if stops == STOPS_MIN {
            println!("enough");
        }
    }
    println!("{stops}");
}
