//! The service that jobs ask: it answers each request after some time, over the loopback interface.
//!
//! It runs in the process of the comparison, so that its memory and threads count for nobody.

use gosched::go;
use gosched::net::{TcpListener, TcpStream};
use gosched::thread::sleep;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A request and its answer have this size.
pub(crate) const MESSAGE: usize = 64;

/// How long an answer takes.
const ANSWERS_AFTER: Duration = Duration::from_millis(5);

/// Answers until it is dropped; who is connected then is answered still.
pub(crate) struct Service {
    listener: Arc<TcpListener>,
    address: SocketAddr,
}

impl Service {
    pub(crate) fn start() -> io::Result<Service> {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0")?);
        let service = Service { address: listener.local_addr()?, listener: listener.clone() };
        drop(go(move || {
            // Fails when it is closed; what can't be accepted before is for the client to notice.
            while let Ok((stream, _)) = listener.accept() {
                drop(go(move || serve(stream)));
            }
        }));
        Ok(service)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.listener.close();
    }
}

/// Until the client is gone.
fn serve(mut stream: TcpStream) {
    let mut message = [0; MESSAGE];
    while stream.read_exact(&mut message).is_ok() {
        sleep(ANSWERS_AFTER);
        if stream.write_all(&message).is_err() {
            return;
        }
    }
}
