//! A server of its own for these pages.

use crate::routes::answer;
use gosched::net::TcpListener;
use gosched_http::{Request, Response};
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Serves the pages of this crate, and nothing else.
///
/// ```
/// use gosched_http::client;
///
/// # fn main() -> std::io::Result<()> {
/// gosched::run(|| {
///     let server = gosched_debug::Server::bind("127.0.0.1:0")?;
///     let address = server.local_addr();
///     server.spawn();
///     let answer = client::get(&format!("http://{address}/debug/dump"))?;
///     assert_eq!(answer.status, 200);
///     assert!(gosched_debug::Server::bind("0.0.0.0:0").is_err());
///     Ok(())
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    is_exposed: bool,
}

impl Server {
    /// Listens at an address of the loopback interface; port 0 takes a free one.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) if others could reach the address, see
    /// [`bind_exposed`](Server::bind_exposed); else what the system says.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Server> {
        let addresses: Vec<_> = address.to_socket_addrs()?.collect();
        if let Some(open) = addresses.iter().find(|one| !is_loopback(one.ip())) {
            let text = format!("{open} can be reached from other machines");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        Server::listen(&addresses[..], false)
    }

    /// Listens at any address, so that whoever reaches it sees the pages and can begin traces.
    /// [`spawn`](Server::spawn) and [`serve`](Server::serve) say so on standard error.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind_exposed(address: impl ToSocketAddrs) -> io::Result<Server> {
        Server::listen(address, true)
    }

    fn listen(address: impl ToSocketAddrs, is_exposed: bool) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(Server { listener, address, is_exposed })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves in a goroutine of its own, as long as the process lives.
    pub fn spawn(self) {
        gosched::go(move || {
            if let Err(error) = self.serve() {
                log(&format!("the debug pages end: {error}"));
            }
        });
    }

    /// Serves. Returns only when the listener fails.
    ///
    /// # Errors
    /// The listener's.
    pub fn serve(self) -> io::Result<()> {
        let Server { listener, address, is_exposed } = self;
        if is_exposed {
            log(&format!(
                "the debug pages at http://{address}/debug/ are open to everybody who reaches that \
                 address, as was asked for"
            ));
        }
        gosched_http::serve(listener, move |req| {
            if !is_exposed && !names_loopback(req) {
                return Response::new(403).body("this server answers to loopback names only\n");
            }
            answer(req).unwrap_or_else(elsewhere)
        })
    }
}

fn elsewhere() -> Response {
    Response::new(404).body("no such page; /debug/ has a list\n")
}

/// A page in a browser can reach this server by a name of its own that means the loopback address,
/// but the request then says that name.
fn names_loopback(req: &Request<'_>) -> bool {
    req.header("host").is_some_and(is_loopback_host)
}

fn is_loopback_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

fn log(text: &str) {
    // Nobody may be there to read it.
    let _ = writeln!(io::stderr(), "gosched-debug: {text}");
}

#[cfg(test)]
mod tests {
    use super::is_loopback_host;

    #[test]
    fn hosts() {
        for host in ["localhost", "LOCALHOST:6060", "127.0.0.1", "127.9.9.9:1", "[::1]:80", "[::1]"]
        {
            assert!(is_loopback_host(host), "{host}");
        }
        for host in ["", "example.org", "127.0.0.1.example.org:80", "0.0.0.0:1", "[::]", "10.0.0.1"]
        {
            assert!(!is_loopback_host(host), "{host}");
        }
    }
}
