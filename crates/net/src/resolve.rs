//! Names to addresses.

use gosched_sched::Limiter;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// libc's resolver blocks, and each lookup has a thread for as long as it takes. Go allows 500.
static LOOKUPS: Limiter = Limiter::new(64);

/// The addresses that `name` stands for. Waits as a declared call: other goroutines go on.
pub(crate) fn resolve<A: ToSocketAddrs>(
    name: &A,
) -> io::Result<impl Iterator<Item = SocketAddr> + use<A>> {
    LOOKUPS.run(|| name.to_socket_addrs())
}
