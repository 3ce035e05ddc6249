//! A timer for each thread of the process, which counts its CPU time.
//!
//! What a thread computes is charged to the code that it computes; with one timer for the process it
//! would be charged to whoever happens to be interrupted. An idle thread costs nothing. Threads come and
//! go, so the list is compared with the system's from time to time.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::time::Duration;

/// The timers.
pub(crate) struct Timers {
    period: Duration,
    /// What a signal of ours carries.
    word: usize,
    of_threads: HashMap<i32, libc::timer_t>,
}

impl Timers {
    pub(crate) fn new(period: Duration, word: usize) -> Timers {
        Timers { period, word, of_threads: HashMap::new() }
    }

    /// Gives each thread one that has none, and takes those of threads that have ended.
    ///
    /// # Errors
    /// If there is no list of threads, or no thread could be given one.
    pub(crate) fn follow_threads(&mut self) -> io::Result<()> {
        let mut ended = std::mem::take(&mut self.of_threads);
        let mut refused = None;
        for entry in std::fs::read_dir("/proc/self/task")? {
            let name = entry?.file_name();
            let Some(tid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            // One of an ended thread, whose number another has now, does not count any more.
            let known = ended.get(&tid).copied().filter(|timer| is_armed(*timer));
            match known {
                Some(timer) => {
                    ended.remove(&tid);
                    self.of_threads.insert(tid, timer);
                }
                None => match self.make(tid) {
                    Ok(timer) => {
                        self.of_threads.insert(tid, timer);
                    }
                    // It may have ended meanwhile, or there are too many.
                    Err(error) => refused = Some(error),
                },
            }
        }
        ended.into_values().for_each(delete);
        match refused {
            Some(error) if self.of_threads.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    fn make(&self, tid: i32) -> io::Result<libc::timer_t> {
        // SAFETY: all-zero is a valid event.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_notify_thread_id = tid;
        event.sigev_signo = libc::SIGPROF;
        event.sigev_value.sival_ptr = ptr::without_provenance_mut(self.word);
        let mut timer = MaybeUninit::<libc::timer_t>::uninit();
        // SAFETY: the event is valid, and the timer a place for one.
        if unsafe { libc::timer_create(cpu_clock(tid), &mut event, timer.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: written by the call above.
        let timer = unsafe { timer.assume_init() };
        let period = libc::timespec {
            tv_sec: self.period.as_secs() as libc::time_t,
            tv_nsec: self.period.subsec_nanos().into(),
        };
        let setting = libc::itimerspec { it_interval: period, it_value: period };
        // SAFETY: a timer of ours.
        if unsafe { libc::timer_settime(timer, 0, &setting, ptr::null_mut()) } != 0 {
            let error = io::Error::last_os_error();
            delete(timer);
            return Err(error);
        }
        Ok(timer)
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.of_threads.drain().for_each(|(_, timer)| delete(timer));
    }
}

/// The kernel's number for the CPU clock of a thread.
fn cpu_clock(tid: i32) -> libc::clockid_t {
    /// One thread's (4), its scheduler's clock (2).
    const OF_THREAD: i32 = 6;
    !tid << 3 | OF_THREAD
}

/// Whether the timer's thread is alive.
fn is_armed(timer: libc::timer_t) -> bool {
    let mut setting = MaybeUninit::<libc::itimerspec>::uninit();
    // SAFETY: a timer of ours, and a place for its setting.
    if unsafe { libc::timer_gettime(timer, setting.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: written by the call above.
    let left = unsafe { setting.assume_init() }.it_value;
    left.tv_sec != 0 || left.tv_nsec != 0
}

fn delete(timer: libc::timer_t) {
    // SAFETY: a timer of ours, whose last use this is.
    unsafe { libc::timer_delete(timer) };
}
