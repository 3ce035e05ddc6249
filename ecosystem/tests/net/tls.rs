//! The example `tls_server` (rustls on gosched's `TcpStream`) against the `openssl` and `curl` of the
//! machine.

#[path = "../../examples/tls_server.rs"]
#[allow(dead_code, reason = "its `main`, which serves for ever")]
mod tls_server;

use gosched::go;
use gosched::net::TcpListener;
use rustls::ServerConfig;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tls_server::{PAGE, config, serve};

fn has(program: &str) -> bool {
    Command::new(program)
        .arg("version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

/// A certificate for localhost, made by `openssl`.
struct Certificate(PathBuf);

impl Certificate {
    fn make() -> Certificate {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("gosched-tls-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let certificate = Certificate(directory);
        let done = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .args(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost"])
            .args([
                Path::new("-keyout"),
                &certificate.key(),
                Path::new("-out"),
                &certificate.chain(),
            ])
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        certificate
    }

    fn key(&self) -> PathBuf {
        self.0.join("key.pem")
    }

    fn chain(&self) -> PathBuf {
        self.0.join("cert.pem")
    }

    fn config(&self) -> Arc<ServerConfig> {
        config(&self.chain(), &self.key()).unwrap()
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Serves so many connections; the port.
fn serve_some(
    config: Arc<ServerConfig>,
    connections: usize,
) -> (u16, gosched::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = go(move || {
        // All of them at once, so none is joined before all are there.
        let handlers: Vec<_> = serve(&listener, config, connections).collect();
        handlers.into_iter().for_each(|handler| handler.join().unwrap().unwrap());
    });
    (port, server)
}

#[gosched::test(timeout = "600s")]
fn openssl_talks_to_it() {
    if !has("openssl") {
        println!("SKIPPED: there is no openssl");
        return;
    }
    let certificate = Certificate::make();
    for version in ["-tls1_2", "-tls1_3"] {
        let (port, server) = serve_some(certificate.config(), 1);
        let mut client = gosched::process::Command::new("openssl")
            .args([
                "s_client",
                "-quiet",
                "-verify_return_error",
                version,
                "-servername",
                "localhost",
            ])
            .args(["-connect", &format!("127.0.0.1:{port}")])
            .arg("-CAfile")
            .arg(certificate.chain())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = client.stdin.take().unwrap();
        input.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut output = client.stdout.take().unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert!(text.ends_with(PAGE), "{version}: {text:?}");
        drop(input);
        client.wait().unwrap();
        server.join().unwrap();
    }
}

#[gosched::test(timeout = "600s")]
fn curl_talks_to_it_many_at_once() {
    if !has("openssl") || !has("curl") {
        println!("SKIPPED: there is no openssl or no curl");
        return;
    }
    const CLIENTS: usize = 16;
    let certificate = Certificate::make();
    let (port, server) = serve_some(certificate.config(), CLIENTS);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let chain = certificate.chain();
            go(move || {
                gosched::process::Command::new("curl")
                    .args(["--silent", "--show-error", "--max-time", "500", "--noproxy", "*"])
                    .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
                    .arg("--cacert")
                    .arg(chain)
                    .arg(format!("https://localhost:{port}/"))
                    .output()
                    .unwrap()
            })
        })
        .collect();
    for client in clients {
        let output = client.join().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), PAGE);
    }
    server.join().unwrap();
}
