//! The CPU profile: where threads spend their time.
//!
//! Each thread has a timer of its CPU time. Its signal's handler notes the frames of the code that it has
//! interrupted; a thread of the profile's own collects them, a few times a second.
//!
//! Signal safety: the handler neither allocates nor locks what it could wait for; see `samples` and
//! `gosched-unwind`.

use crate::encode::Encoder;
use crate::samples;
use crate::timers::Timers;
use gosched_base::os;
use gosched_fiber::arch::preempt::{self, Interrupted};
use gosched_sched::{Labels, profile};
use gosched_unwind::Registers;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Go's.
const RATE: u32 = 100;
/// More often the handlers themselves would be what is seen.
const RATE_MAX: u32 = 10_000;
/// How often samples are collected and threads looked for.
const PAUSE: Duration = Duration::from_millis(100);

/// Odd while signals are samples. Each profile has a number of its own: what a handler that came late
/// has left for an earlier one is not for the next, when labels that it names may be gone.
static NUMBER: AtomicUsize = AtomicUsize::new(0);
/// Whose SIGPROF it is when it is none of ours: the address, with the top bit if it takes three arguments.
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);
const TAKES_INFO: usize = 1 << (usize::BITS - 1);

struct Running {
    out: Box<dyn Write + Send>,
    stop: Sender<()>,
    collector: JoinHandle<()>,
    collected: Arc<Mutex<Option<Collected>>>,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// Periods by stack and labels.
struct Collected {
    begun: SystemTime,
    period: Duration,
    stacks: HashMap<Key, u64>,
}

/// A stack, and whose it was.
type Key = (Box<[usize]>, Option<Arc<Labels>>);

/// As [`start_cpu_profile_at`], 100 times in each second of CPU time. Go's `pprof.StartCPUProfile`.
///
/// ```
/// let file = std::env::temp_dir().join(format!("doc-{}.pprof", std::process::id()));
/// gosched_pprof::start_cpu_profile(std::fs::File::create(&file)?)?;
/// assert!(gosched_pprof::start_cpu_profile(std::io::sink()).is_err());
/// gosched_pprof::stop_cpu_profile()?;
/// # std::fs::remove_file(&file)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`start_cpu_profile_at`].
pub fn start_cpu_profile(out: impl Write + Send + 'static) -> io::Result<()> {
    start_cpu_profile_at(RATE, out)
}

/// Begins to note where threads spend their time, `rate` times in each second that one computes, for
/// [`stop_cpu_profile`] to write to `out`.
///
/// All threads of the process are seen, other than the runtime's helpers; a new one within a tenth of a
/// second. The time that goroutines wait is not (see [`Profile::Block`](crate::Profile::Block)). Samples
/// have the goroutine's labels, except for those within the runtime itself.
///
/// SIGPROF is the profile's from the first start on; one that it has not sent goes to the handler that was
/// there before.
///
/// # Errors
/// [`ResourceBusy`](io::ErrorKind::ResourceBusy): there is one already.
/// [`InvalidInput`](io::ErrorKind::InvalidInput): the rate is 0 or above 10,000.
/// What the system says about threads and timers.
pub fn start_cpu_profile_at(rate: u32, out: impl Write + Send + 'static) -> io::Result<()> {
    if !(1..=RATE_MAX).contains(&rate) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the rate is not in 1..=10000"));
    }
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if running.is_some() {
        let error = "a CPU profile is being made already";
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, error));
    }
    gosched_unwind::prepare();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    gosched_unwind::reserve(2 * cpus + 2);
    samples::prepare();
    profile::prepare_for_traces();
    install()?;
    let period = Duration::from_secs(1) / rate;
    profile::begin_sampling();
    // ORDERING: Relaxed; the timers come after it.
    let number = NUMBER.fetch_add(1, Relaxed) + 1;
    debug_assert!(is_odd(number));
    let collected = Arc::new(Mutex::new(None));
    let (stop, stopped) = channel();
    let (said, says) = channel();
    let collector = profile::helper("gosched-pprof", {
        let collected = collected.clone();
        move || {
            let mut timers = Timers::new(period, our_word());
            let begun = timers.follow_threads();
            let has_begun = begun.is_ok();
            let _ = said.send(begun);
            if has_begun {
                let all = collect(timers, number, period, &stopped);
                *collected.lock().unwrap_or_else(PoisonError::into_inner) = Some(all);
            }
        }
    });
    let begun = match &collector {
        Ok(_) => says.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())),
        Err(_) => Ok(()),
    };
    match (collector, begun) {
        (Ok(collector), Ok(())) => {
            *running = Some(Running { out: Box::new(out), stop, collector, collected });
            Ok(())
        }
        (Err(error), _) | (_, Err(error)) => {
            switch_off();
            Err(error)
        }
    }
}

/// Ends the CPU profile and writes it. Go's `pprof.StopCPUProfile`. Nothing if there is none.
///
/// # Errors
/// What its writer returns.
pub fn stop_cpu_profile() -> io::Result<()> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Running { mut out, stop, collector, collected }) = running.take() else {
        return Ok(());
    };
    drop(stop);
    let _ = gosched_sched::blocking(|| collector.join());
    switch_off();
    drop(running);
    let collected = collected.lock().unwrap_or_else(PoisonError::into_inner).take();
    match collected {
        Some(collected) => collected.write(&mut out).and_then(|()| out.flush()),
        None => Err(io::Error::other("the collector of the profile has panicked")),
    }
}

/// Whether a CPU profile is being made.
#[must_use]
pub fn is_cpu_profiled() -> bool {
    // ORDERING: Relaxed; a hint.
    is_odd(NUMBER.load(Relaxed))
}

fn is_odd(number: usize) -> bool {
    number % 2 == 1
}

fn switch_off() {
    // ORDERING: Relaxed; the timers are gone.
    NUMBER.fetch_add(1, Relaxed);
    profile::end_sampling();
}

/// On the collector's thread, until it is told to stop.
fn collect(
    mut timers: Timers,
    number: usize,
    period: Duration,
    stopped: &Receiver<()>,
) -> Collected {
    let begun = SystemTime::now();
    let mut collected = Collected { begun, period, stacks: HashMap::new() };
    loop {
        let is_over = stopped.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout);
        if is_over {
            drop(std::mem::replace(&mut timers, Timers::new(period, our_word())));
        } else {
            // What can't be looked at now may be the next time.
            let _ = timers.follow_threads();
            gosched_unwind::prepare();
        }
        // What was dropped before is in samples that are complete.
        let garbage = profile::take_garbage();
        collected.drain(number);
        drop(garbage);
        if is_over {
            return collected;
        }
    }
}

impl Collected {
    fn drain(&mut self, number: usize) {
        samples::drain(number, |sample| {
            // SAFETY: drained now, and the garbage that is kept meanwhile was taken before.
            let labels = unsafe { profile::labels_at(sample.whose.labels) };
            let key = (Box::from(sample.frames.pcs()), labels);
            *self.stacks.entry(key).or_default() += sample.periods;
        });
    }

    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        const CPU: (&str, &str) = ("cpu", "nanoseconds");
        let period = self.period.as_nanos() as i64;
        let mut encoder = Encoder::new(&[("samples", "count"), CPU], CPU, period);
        encoder.set_time(self.begun);
        for ((pcs, labels), periods) in &self.stacks {
            let periods = *periods as i64;
            encoder.add(pcs, &[periods, periods * period], labels.as_deref());
        }
        let lost = samples::lost() as i64;
        if lost > 0 {
            encoder.add_named("[lost samples]", ("", 0), &[lost, lost * period], None);
        }
        encoder.write(out)
    }
}

fn our_word() -> usize {
    (&raw const NUMBER).addr()
}

/// Makes SIGPROF ours, once for all: one may be on its way when its timer is gone.
fn install() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    // SAFETY: all-zero is a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: fills the set, which is ours: nothing is to stop or move the handler.
    unsafe { libc::sigfillset(&mut action.sa_mask) };
    let mut previous = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: both actions are ours; the handler is async-signal-safe.
    if unsafe { libc::sigaction(libc::SIGPROF, &action, previous.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: written by the call above.
    let previous = unsafe { previous.assume_init() };
    let takes_info = previous.sa_flags & libc::SA_SIGINFO != 0;
    // ORDERING: Relaxed; one word, and code that is not new.
    PREVIOUS.store(previous.sa_sigaction | if takes_info { TAKES_INFO } else { 0 }, Relaxed);
    *installed = true;
    Ok(())
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    preempt::forget_alignment_checks();
    // SAFETY: the second argument of the handler that runs.
    let Some(overruns) = (unsafe { overruns_of_ours(info) }) else {
        return chain(signal, info, context);
    };
    // ORDERING: Relaxed; one that comes late is none.
    let number = NUMBER.load(Relaxed);
    if !is_odd(number) {
        return;
    }
    // SAFETY: the third argument of the handler that runs.
    let [pc, sp, bp] = unsafe { Interrupted::new(context) }.position();
    samples::put(1 + overruns, |sample| {
        sample.number = number;
        sample.whose = profile::interrupted();
        gosched_unwind::walk_apart(Registers { pc, sp, bp }, &mut sample.frames);
        profile::tell_trace(&sample.whose, &sample.frames);
    });
}

/// How many signals of our timer were merged with this one; `None` if it is none of ours.
///
/// # Safety
/// * `info` is what a handler gets.
unsafe fn overruns_of_ours(info: *const libc::siginfo_t) -> Option<u64> {
    /// What follows the code, in the kernel's record of a timer's signal.
    #[repr(C)]
    struct OfTimer {
        head: [c_int; 4],
        timer: c_int,
        overruns: c_int,
        word: usize,
    }
    // SAFETY: by the caller.
    if unsafe { info.as_ref() }?.si_code != libc::SI_TIMER {
        return None;
    }
    // SAFETY: by its code it is this kind of record.
    let OfTimer { overruns, word, .. } = unsafe { info.cast::<OfTimer>().read() };
    (word == our_word()).then_some(u64::try_from(overruns).unwrap_or(0))
}

fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // ORDERING: Relaxed; see `install`.
    let word = PREVIOUS.load(Relaxed);
    let previous = word & !TAKES_INFO;
    if previous == libc::SIG_IGN {
        return;
    }
    if previous == libc::SIG_DFL {
        // What the default action of SIGPROF is for whoever sends one that nobody handles.
        os::write_all(2, b"Profiling timer expired\n");
        os::exit_group(128 + libc::SIGPROF);
    }
    if word & TAKES_INFO != 0 {
        // SAFETY: installed by its owner with SA_SIGINFO.
        let f: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(previous) };
        f(signal, info, context);
    } else {
        // SAFETY: installed by its owner without SA_SIGINFO.
        let f: extern "C" fn(c_int) = unsafe { std::mem::transmute(previous) };
        f(signal);
    }
}
