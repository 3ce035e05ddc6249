//! The OS threads that resume coroutines by turns.

use gosched_fiber::{Carrier, Coroutine, suspend, tls};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;

const CARRIERS: usize = 4;

/// A coroutine to resume once, and whom to send it back to.
struct Errand {
    coroutine: Coroutine,
    back: mpsc::Sender<(Coroutine, Result<bool, Payload>)>,
}

type Payload = Box<dyn Any + Send>;

/// OS threads that resume what they are sent.
pub(crate) struct Carriers {
    threads: Vec<mpsc::Sender<Errand>>,
}

impl Carriers {
    /// Starts the threads. Half of them are carriers for life, half only while they resume.
    pub(crate) fn start() -> Carriers {
        let start = |i| {
            let (sender, errands) = mpsc::channel();
            std::thread::spawn(move || {
                let _carrier = (i % 2 == 0).then(Carrier::new);
                work(errands);
            });
            sender
        };
        Carriers { threads: (0..CARRIERS).map(start).collect() }
    }

    /// Runs `f` on a coroutine, each part on another thread.
    ///
    /// # Panics
    /// If `f` panics, with its payload.
    pub(crate) fn run(&self, f: impl FnOnce() + Send + 'static) {
        self.drive(vec![coroutine(f)]);
    }

    /// Resumes all of `coroutines` by turns until each has ended.
    ///
    /// # Panics
    /// If one panics, with its payload.
    pub(crate) fn drive(&self, coroutines: Vec<Coroutine>) {
        let started = self.start_all(coroutines);
        self.finish_all(started);
    }

    /// Resumes each of `coroutines` once.
    pub(crate) fn start_all(&self, coroutines: Vec<Coroutine>) -> Vec<Started> {
        let start = |(i, coroutine)| self.resume(i % CARRIERS, coroutine);
        coroutines.into_iter().enumerate().filter_map(start).collect()
    }

    /// Resumes all of `live` by turns until each has ended, never twice on the same thread.
    pub(crate) fn finish_all(&self, mut live: Vec<Started>) {
        while !live.is_empty() {
            let next = |Started { coroutine, on }| self.resume((on + 1) % CARRIERS, coroutine);
            live = live.into_iter().filter_map(next).collect();
        }
    }

    /// Resumes `coroutine` on the thread with that number; `None` if it ends.
    fn resume(&self, on: usize, coroutine: Coroutine) -> Option<Started> {
        let (back, answer) = mpsc::channel();
        self.threads[on].send(Errand { coroutine, back }).expect("a carrier lives");
        let (coroutine, result) = answer.recv().expect("a carrier answers");
        match result {
            Ok(true) => None,
            Ok(false) => Some(Started { coroutine, on }),
            Err(payload) => resume_unwind(payload),
        }
    }
}

/// A coroutine that was suspended, and the number of the thread it was on.
pub(crate) struct Started {
    coroutine: Coroutine,
    on: usize,
}

/// A coroutine with a stack of the default size.
pub(crate) fn coroutine(f: impl FnOnce() + Send + 'static) -> Coroutine {
    Coroutine::new(f).expect("memory for a coroutine")
}

fn work(errands: mpsc::Receiver<Errand>) {
    for Errand { mut coroutine, back } in errands {
        let result = catch_unwind(AssertUnwindSafe(|| coroutine.resume()));
        // The driver may have given up on the rest after a panic.
        let _ = back.send((coroutine, result));
    }
}

/// Goes on on another OS thread.
pub(crate) fn hop() {
    let before = os_thread();
    suspend();
    if tls::kind() != tls::Kind::Threads {
        assert_ne!(before, os_thread(), "the coroutine did not move");
    }
}

/// The kernel's number of the thread that runs the caller at the moment.
pub(crate) fn os_thread() -> i64 {
    // SAFETY: no arguments, no memory. libc's wrapper asks the kernel each time.
    unsafe { libc::syscall(libc::SYS_gettid) }
}
