//! The torture test: `torture SEED SECONDS`, or longer by hand.
//!
//! Goroutines are stopped every 100 us, wherever they are, while they do everything that has state
//! somewhere: in registers, thread-locals, allocators, locks, libc, the loader, signal handlers,
//! and the kernel. Every value is checked, and a wrong one ends the process at once.
//!
//! A run that did not see what it is for fails as well: see `witness`. `GOSCHED` and `GOMAXPROCS`
//! choose the mode; with `tls=shared`, what needs own thread-locals is left out. `TORTURE_PROFILE=100`
//! has a CPU profile made all the while, of so many samples in a second of CPU time.

mod acts;
mod pulse;
mod witness;

mod family;
mod foreign;
mod handler;
mod kernel;
mod library;
mod locals;
mod locks;
mod memory;
mod stack;
mod state;
mod text;
mod unwind;

use gosched::{go, runtime};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, io, panic};
use testprogs::random::Random;

/// Goroutines that act until the end.
const ACTORS: u64 = 60;
/// So much longer than asked for a run may go on until it has seen what it is for.
const EXTRA_MAX: Duration = Duration::from_secs(90);
/// Beyond that, a run that has not ended hangs.
const PATIENCE: Duration = Duration::from_secs(90);

/// Threads that run goroutines, at most: few enough that all can be blocked at once.
const THREADS_MAX: usize = 24;

static OVER: AtomicBool = AtomicBool::new(false);

/// Whether the time is over.
fn is_over() -> bool {
    OVER.load(Relaxed)
}

fn main() {
    let mut arguments = env::args().skip(1);
    let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok());
    let (seed, seconds) = number().zip(number()).expect("usage: torture SEED SECONDS");
    limit_threads();
    gosched::Config::new().slice(Duration::from_micros(100)).start().expect("it is the first");
    let lines = text::take_stdout();
    lines.say(&format!("seed={seed}"));
    end_at_the_first_wrong_value(seed);
    handler::install();
    let profile = start_profile();
    let time = Duration::from_secs(seconds);
    std::thread::spawn(move || give_up_after(time + EXTRA_MAX + PATIENCE));
    let (before, begun) = (witness::Seen::now(), Instant::now());
    let mut random = Random::new(seed);
    let actors: Vec<_> = (0..ACTORS).map(|i| (i, random.fork())).collect();
    let actors: Vec<_> =
        actors.into_iter().map(|(i, r)| go(move || acts::until_over(i, r))).collect();
    std::thread::sleep(time);
    let (seen, took) = loop {
        let (seen, took) = (witness::Seen::now().since(&before), begun.elapsed());
        if seen.is_enough(time) || took > time + EXTRA_MAX {
            break (seen, took);
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    OVER.store(true, Relaxed);
    actors.into_iter().for_each(|actor| actor.join().expect("a wrong value ends the process"));
    memory::check_all();
    locks::check_all();
    if let Some(profile) = profile {
        gosched::pprof::stop_cpu_profile().expect("memory takes all");
        let bytes = profile.lock().expect("its writer does not panic").len();
        lines.say(&format!("profile={bytes}"));
        assert!(bytes > 1_000, "a profile of {bytes} bytes");
    }
    let printed = lines.finish();
    acts::DONE.iter().for_each(|(name, count)| lines.say(&format!("{name}={}", count.get())));
    lines.say(&format!("lines={printed}"));
    std::process::exit(seen.judge(time, took, &lines));
}

/// The profile's file, if one is asked for.
fn start_profile() -> Option<Arc<Mutex<Vec<u8>>>> {
    struct Memory(Arc<Mutex<Vec<u8>>>);
    impl io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panics with it").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let rate = env::var("TORTURE_PROFILE").ok()?.parse().expect("samples in a second");
    let file = Arc::new(Mutex::new(Vec::new()));
    gosched::pprof::start_cpu_profile_at(rate, Memory(file.clone())).expect("it is the first");
    Some(file)
}

/// Adds the limit to the operator's settings, unless they have one, where calls that block can be
/// ended by a signal.
fn limit_threads() {
    let settings = env::var("GOSCHED").unwrap_or_default();
    let can_be_ended = pulse::has_signals() && !pulse::shares_thread_locals();
    if can_be_ended && !settings.contains("maxthreads") {
        // SAFETY: there is no other thread yet.
        unsafe { env::set_var("GOSCHED", format!("{settings},maxthreads={THREADS_MAX}")) };
    }
}

/// Panics that are part of an act are silent; any other is a check that failed, and tells the seed.
fn end_at_the_first_wrong_value(seed: u64) {
    panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<unwind::Thrown>() {
            let g = runtime::goroutine_id();
            let trace = std::backtrace::Backtrace::force_capture();
            eprintln!("seed={seed} goroutine {g:?}: {info}\n{trace}");
            std::process::abort();
        }
    }));
}

/// Says who hangs, and ends the process.
fn give_up_after(time: Duration) {
    std::thread::sleep(time);
    let mut text = String::new();
    runtime::dump(&mut text).expect("a String takes everything");
    eprintln!("hangs\n{:?}\n{:?}\n{text}", runtime::preemptions(), runtime::counters());
    std::process::abort();
}
