//! The thread that tells of signals.
//!
//! A thread of its own, which is no machine: with it in the process nobody concludes that a program
//! which waits for a signal is deadlocked.

use super::Signal;
use super::handler::{Kernel, PENDING};
use super::table::{Listener, Table};
use gosched_channel::{Sender, TrySendError};
use std::io;
use std::sync::{Mutex, PoisonError};

static TABLE: Table<Sender<Signal>, Kernel> = Table::new(Kernel);
/// Whether there is a dispatcher.
static HAS_THREAD: Mutex<bool> = Mutex::new(false);

impl Listener for Sender<Signal> {
    fn tell(&self, signal: Signal) -> bool {
        match self.try_send(signal) {
            Err(TrySendError::Disconnected(_)) => false,
            // A full channel loses it, as in Go.
            Ok(()) | Err(TrySendError::Full(_)) => true,
        }
    }
}

/// `sender` gets these signals from now on.
#[track_caller]
pub(super) fn add(sender: Sender<Signal>, signals: &[Signal]) {
    if let Err(error) = ensure_thread() {
        panic!("signal::notify: can't start the dispatcher: {error}");
    }
    TABLE.add(sender, signals);
}

pub(super) fn ignore(signals: &[Signal]) {
    TABLE.ignore(signals);
}

pub(super) fn reset(signals: &[Signal]) {
    TABLE.reset(signals);
}

fn ensure_thread() -> io::Result<()> {
    let mut has_thread = HAS_THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if !*has_thread {
        PENDING.bell().open()?;
        std::thread::Builder::new().name("gosched-signal".into()).spawn(dispatch)?;
        *has_thread = true;
    }
    Ok(())
}

/// Handlers run on the program's threads.
fn block_all_signals() {
    let mut all = std::mem::MaybeUninit::uninit();
    // SAFETY: the set is ours, and filled.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the set was filled above; libc keeps its own two signals out.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut()) };
}

fn dispatch() {
    block_all_signals();
    loop {
        let pending = PENDING.wait();
        let come = (1..=64).map(Signal).filter(|signal| pending & signal.bit() != 0);
        come.for_each(|signal| TABLE.deliver(signal));
    }
}
