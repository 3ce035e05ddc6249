//! Signals, as messages on a channel. Go's `os/signal`.
//!
//! A handler may do next to nothing, so ours sets a bit and wakes a thread that sends the messages.
//! Nothing of the runtime's own is visible here: the signals by which it stops goroutines and
//! notices faults can't be asked for.

mod bell;
mod dispatch;
mod handler;
mod pending;
mod rt;
mod table;

use gosched_channel::{Receiver, bounded};
use std::fmt;

/// A signal, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signal(i32);

macro_rules! signals {
    ($($(#[$doc:meta])* $name:ident = $number:ident,)*) => {
        impl Signal {
            $($(#[$doc])* pub const $name: Signal = Signal(libc::$number);)*

            fn name(self) -> Option<&'static str> {
                match self.0 {
                    $(libc::$number => Some(stringify!($number)),)*
                    _ => None,
                }
            }
        }
    };
}

signals! {
    /// The terminal is gone, or "read your settings again".
    HANGUP = SIGHUP,
    /// Control-C.
    INTERRUPT = SIGINT,
    /// Control-\.
    QUIT = SIGQUIT,
    /// Please end.
    TERMINATE = SIGTERM,
    /// For the program's own use.
    USER1 = SIGUSR1,
    /// For the program's own use.
    USER2 = SIGUSR2,
    /// A child has changed its state.
    CHILD = SIGCHLD,
    /// Nobody reads what was written.
    PIPE = SIGPIPE,
    /// `alarm(2)`.
    ALARM = SIGALRM,
    /// The terminal's size has changed.
    WINDOW = SIGWINCH,
    /// Goes on after a stop.
    CONTINUE = SIGCONT,
    /// Control-Z.
    STOP_BY_TERMINAL = SIGTSTP,
}

/// Signals that can't be asked for: the kernel's own, faults, those of the runtime, and libc's two.
const REFUSED: [i32; 12] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGURG,
    libc::SIGPROF,
    32,
    33,
];

impl Signal {
    /// The signal with this number; `None` if there is none, or it can't be asked for.
    #[must_use]
    pub fn from_raw(number: i32) -> Option<Signal> {
        ((1..=64).contains(&number) && !REFUSED.contains(&number)).then_some(Signal(number))
    }

    /// Its number.
    #[must_use]
    pub fn as_raw(self) -> i32 {
        self.0
    }

    fn bit(self) -> u64 {
        1 << (self.0 - 1)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "signal {}", self.0),
        }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// So many signals wait in a channel; more are lost, as in Go.
const CAPACITY: usize = 64;

/// A channel on which these signals come from now on. Go's `signal.Notify`.
///
/// What the signals did before they do no more, until [`reset`]. Each of several channels gets each
/// signal. Signals that come faster than they are received may be merged, as everywhere.
///
/// ```
/// use gosched_os::signal::{Signal, notify};
///
/// let signals = notify(&[Signal::USER1]);
/// // SAFETY: sends a signal that was asked for.
/// unsafe { libc::raise(libc::SIGUSR1) };
/// assert_eq!(signals.recv().unwrap(), Signal::USER1);
/// ```
///
/// # Panics
/// If no signal is given, and if the system refuses the thread that sends the messages.
#[track_caller]
#[must_use = "the signals come on the channel"]
pub fn notify(signals: &[Signal]) -> Receiver<Signal> {
    assert!(!signals.is_empty(), "signal::notify: no signal");
    let (sender, receiver) = bounded(CAPACITY);
    dispatch::add(sender, signals);
    receiver
}

/// From now on these signals do nothing. Go's `signal.Ignore`.
///
/// Channels that had asked for them get them no more.
pub fn ignore(signals: &[Signal]) {
    dispatch::ignore(signals);
}

/// These signals do again what they did before [`notify`] and [`ignore`]. Go's `signal.Reset`.
///
/// Channels that had asked for them get them no more.
pub fn reset(signals: &[Signal]) {
    dispatch::reset(signals);
}
