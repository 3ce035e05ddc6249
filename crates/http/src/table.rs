//! Who is connected, and whether the server still accepts.

use crate::phase::{Ended, Phase};
use gosched::net::{Shutdown, TcpListener, TcpStream};
use gosched::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A connection, for its goroutine and for who ends it.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) phase: Phase,
}

/// All connections of a server.
#[derive(Debug)]
pub(crate) struct Table {
    state: Mutex<State>,
    /// A connection has ended, or the server shuts down.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    connections: HashMap<u64, Arc<Connected>>,
    listeners: HashMap<u64, Arc<TcpListener>>,
    next: u64,
    is_ending: bool,
}

/// A connection's place in the table.
#[derive(Debug)]
pub(crate) struct Place {
    table: Arc<Table>,
    number: u64,
    pub(crate) connected: Arc<Connected>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.table.lock().connections.remove(&self.number);
        self.table.changed.notify_all();
    }
}

/// A listener's place in the table.
#[derive(Debug)]
pub(crate) struct Listening {
    table: Arc<Table>,
    number: u64,
    pub(crate) listener: Arc<TcpListener>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.table.lock().listeners.remove(&self.number);
        self.table.changed.notify_all();
    }
}

impl Table {
    pub(crate) fn new() -> Table {
        let state = State {
            connections: HashMap::new(),
            listeners: HashMap::new(),
            next: 0,
            is_ending: false,
        };
        Table { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Nothing panics under it, so a poisoned one is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn listen(self: &Arc<Self>, listener: TcpListener) -> Listening {
        let listener = Arc::new(listener);
        let mut state = self.lock();
        let number = state.number();
        if state.is_ending {
            accept_no_longer(&listener);
        }
        state.listeners.insert(number, listener.clone());
        Listening { table: self.clone(), number, listener }
    }

    /// Enters a connection.
    pub(crate) fn enter(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) -> Place {
        let connected = Arc::new(Connected { stream, peer, phase: Phase::new() });
        let mut state = self.lock();
        let number = state.number();
        if state.is_ending {
            // It does not wait yet, so nobody has to be woken.
            let _ = connected.phase.end();
        }
        state.connections.insert(number, connected.clone());
        drop(state);
        Place { table: self.clone(), number, connected }
    }

    /// Waits until there are fewer connections than `most`.
    pub(crate) fn wait_for_room(&self, most: usize) {
        let mut state = self.lock();
        while state.connections.len() >= most {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.lock().is_ending
    }

    /// How many are connected.
    pub(crate) fn len(&self) -> usize {
        self.lock().connections.len()
    }

    /// No more requests than there are.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_ending, true) {
            return;
        }
        state.listeners.values().for_each(|listener| accept_no_longer(listener));
        let idle = state.connections.values().filter(|c| c.phase.end() == Ended::Wake);
        idle.for_each(|connected| {
            // Fails if the other side has ended it.
            let _ = connected.stream.shutdown(Shutdown::Read);
        });
        drop(state);
        self.changed.notify_all();
    }

    /// Ends the connections, whatever they do.
    pub(crate) fn close(&self) {
        self.end();
        self.lock().connections.values().for_each(|connected| connected.stream.close());
    }

    /// Waits until nobody listens and nobody is connected; false if the time was over first.
    pub(crate) fn wait_until_empty(&self, until: Option<Instant>) -> bool {
        let mut state = self.lock();
        while !(state.connections.is_empty() && state.listeners.is_empty()) {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match left {
                Some(Duration::ZERO) => return false,
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        true
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// Wakes who accepts; what has been connected already can still be accepted without a wait.
fn accept_no_longer(listener: &TcpListener) {
    // Never fails.
    let _: io::Result<()> = listener.set_nonblocking(true);
    // A call that waits now does not see the mode, but the deadline.
    listener.set_deadline(Some(Instant::now()));
}
