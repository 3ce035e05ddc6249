//! Who wants which signals, and the thread that tells them.
//!
//! A thread of its own, which is no machine: with it in the process nobody concludes that a program
//! which waits for a signal is deadlocked.

use super::{Signal, handler};
use gosched_channel::{Sender, TrySendError};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// One that wants signals.
struct Wish {
    sender: Sender<Signal>,
    /// A bit for each signal.
    signals: u64,
}

struct Wishes {
    wishes: Vec<Wish>,
    has_thread: bool,
}

static WISHES: Mutex<Wishes> = Mutex::new(Wishes { wishes: Vec::new(), has_thread: false });

/// `sender` gets these signals from now on.
#[track_caller]
pub(super) fn add(sender: Sender<Signal>, signals: &[Signal]) {
    let mut state = WISHES.lock().unwrap_or_else(PoisonError::into_inner);
    if !state.has_thread {
        if let Err(error) = start_thread() {
            drop(state);
            panic!("signal::notify: can't start the dispatcher: {error}");
        }
        state.has_thread = true;
    }
    let bits = signals.iter().fold(0, |bits, signal| bits | signal.bit());
    state.wishes.push(Wish { sender, signals: bits });
    drop(state);
    signals.iter().for_each(|signal| handler::install(*signal));
}

/// Nobody gets these signals any more.
pub(super) fn remove(signals: &[Signal]) {
    let bits = signals.iter().fold(0, |bits, signal| bits | signal.bit());
    let mut state = WISHES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut gone = Vec::new();
    for wish in std::mem::take(&mut state.wishes) {
        let left = Wish { signals: wish.signals & !bits, ..wish };
        if left.signals == 0 { gone.push(left) } else { state.wishes.push(left) }
    }
    drop(state);
    // Dropping a sender closes its channel, which wakes whoever waits there.
    drop(gone);
}

fn start_thread() -> std::io::Result<()> {
    // SAFETY: no memory is passed.
    let bell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if bell < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: just opened for us.
    let bell = File::from(unsafe { OwnedFd::from_raw_fd(bell) });
    handler::set_bell(bell.as_raw_fd());
    std::thread::Builder::new().name("gosched-signal".into()).spawn(move || {
        block_all_signals();
        dispatch(bell);
    })?;
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

fn dispatch(mut bell: File) {
    loop {
        // D1. An error is a signal's doing, and there is nobody to tell.
        let _ = bell.read(&mut [0; 8]);
        let pending = handler::take_pending();
        (1..=64).filter(|n| pending & 1 << (n - 1) != 0).for_each(|n| deliver(Signal(n)));
    }
}

fn deliver(signal: Signal) {
    let mut state = WISHES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut is_heard = false;
    let mut gone = Vec::new();
    for wish in std::mem::take(&mut state.wishes) {
        if wish.signals & signal.bit() != 0 {
            match wish.sender.try_send(signal) {
                Err(TrySendError::Disconnected(_)) => {
                    gone.push(wish);
                    continue;
                }
                // A full channel loses it, as in Go.
                Ok(()) | Err(TrySendError::Full(_)) => is_heard = true,
            }
        }
        state.wishes.push(wish);
    }
    if !is_heard {
        // All receivers are gone: it does what it did before, this time already.
        handler::restore(signal);
        handler::raise(signal);
    }
    drop(state);
    drop(gone);
}
