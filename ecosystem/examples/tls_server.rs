//! A TLS server in plain blocking code: rustls on gosched's `TcpStream`, a goroutine a connection.
//!
//! `cargo run --example tls_server -- CERTIFICATE.pem KEY.pem [127.0.0.1:8443]`, then
//! `curl --cacert CERTIFICATE.pem https://localhost:8443/`. A certificate to try it with:
//! `openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost
//! -addext subjectAltName=DNS:localhost -keyout KEY.pem -out CERTIFICATE.pem`.

use gosched::go;
use gosched::net::{TcpListener, TcpStream};
use gosched::thread::JoinHandle;
use rustls::{ServerConfig, ServerConnection, Stream};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::error::Error;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

pub(crate) const PAGE: &str = "Hello from a goroutine\n";

#[gosched::main]
fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (chain, key, address) = match &arguments[..] {
        [chain, key] => (chain, key, "127.0.0.1:8443"),
        [chain, key, address] => (chain, key, address.as_str()),
        _ => return Err("usage: tls_server CERTIFICATE.pem KEY.pem [ADDRESS]".into()),
    };
    let config = config(Path::new(chain), Path::new(key))?;
    let listener = TcpListener::bind(address)?;
    eprintln!("https://{}/", listener.local_addr()?);
    // Dropping a handle lets its goroutine go on.
    serve(&listener, config, usize::MAX).for_each(drop);
    Ok(())
}

/// What the server shows its clients.
pub(crate) fn config(
    chain: &Path,
    key: &Path,
) -> Result<Arc<ServerConfig>, Box<dyn Error + Send + Sync>> {
    let chain = CertificateDer::from_pem_file(chain)?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)?;
    Ok(Arc::new(config))
}

/// Accepts so many connections, each for a goroutine of its own.
pub(crate) fn serve(
    listener: &TcpListener,
    config: Arc<ServerConfig>,
    connections: usize,
) -> impl Iterator<Item = JoinHandle<io::Result<()>>> {
    listener.incoming().take(connections).map(move |socket| {
        let config = config.clone();
        go(move || answer(socket?, config))
    })
}

/// Answers one request of HTTP/1.0.
fn answer(mut socket: TcpStream, config: Arc<ServerConfig>) -> io::Result<()> {
    let mut connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = Stream::new(&mut connection, &mut socket);
    let mut head = Vec::new();
    let mut buffer = [0; 512];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            n => head.extend_from_slice(&buffer[..n]),
        }
    }
    let length = PAGE.len();
    write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n{PAGE}")?;
    stream.conn.send_close_notify();
    stream.flush()
}
