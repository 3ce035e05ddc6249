//! Clients that others wrote.

use crate::fixture::{Fixture, HELLO};
use gosched_http::client::get;
use std::io::{ErrorKind, Write};
use std::process::{Command, Output, Stdio};

/// Runs a program with this input; `None` if it is not installed.
fn run(program: &str, arguments: &[&str], input: &[u8]) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A proxy would be asked instead.
    command.env("no_proxy", "127.0.0.1");
    let mut child = match command.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("SKIPPED: {program} is not installed");
            return None;
        }
        child => child.unwrap(),
    };
    child.stdin.take().unwrap().write_all(input).unwrap();
    Some(child.wait_with_output().unwrap())
}

#[gosched::test(timeout = "240s")]
fn curl() {
    let server = Fixture::start();
    let curl = |arguments: &[&str], path: &str, input: &[u8]| {
        let url = server.url(path);
        let arguments = [&["--silent", "--show-error", "--max-time", "200"], arguments, &[&url]];
        let output = run("curl", &arguments.concat(), input)?;
        assert!(output.status.success(), "{output:?}");
        Some(output.stdout)
    };
    let body: Vec<u8> = (0..300_000).map(|n| (n % 241) as u8).collect();
    let data = &["--data-binary", "@-"][..];
    let chunked = &["--data-binary", "@-", "--header", "Transfer-Encoding: chunked"][..];
    let waits = &["--data-binary", "@-", "--header", "Expect: 100-continue"][..];
    let Some(hello) = curl(&[], "/", b"") else { return server.stop() };
    assert_eq!(hello, HELLO.as_bytes());
    for arguments in [data, chunked, waits] {
        assert!(curl(arguments, "/echo", &body).unwrap() == body, "{arguments:?}");
    }
    assert_eq!(curl(&[], "/stream", b"").unwrap(), b"onetwo");
    assert_eq!(curl(&["--http1.0"], "/stream", b"").unwrap(), b"onetwo");
    let head = curl(&["--head"], "/", b"").unwrap();
    assert!(head.starts_with(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n"));
    server.stop();
}

#[gosched::test(timeout = "240s")]
fn python() {
    const SCRIPT: &str = r#"
import http.client, sys
c = http.client.HTTPConnection(sys.argv[1])
def ask(method, path, body=None, headers={}, **more):
    c.request(method, path, body, headers, **more)
    r = c.getresponse()
    return r.status, r.read()
for _ in range(3):
    assert ask("GET", "/") == (200, b"Hello, World!")
assert ask("HEAD", "/") == (200, b"")
assert ask("GET", "/none")[0] == 404
assert ask("POST", "/echo", b"x" * 100000) == (200, b"x" * 100000)
assert ask("POST", "/echo", iter([b"a", b"bc"]), encode_chunked=True,
           headers={"Transfer-Encoding": "chunked"}) == (200, b"abc")
assert ask("GET", "/stream") == (200, b"onetwo")
assert c.sock is not None, "one connection for all"
print("well")
"#;
    let server = Fixture::start();
    let address = server.address.to_string();
    if let Some(output) = run("python3", &["-", &address], SCRIPT.as_bytes()) {
        assert_eq!(output.stdout, b"well\n", "{output:?}");
    }
    server.stop();
}

#[gosched::test(timeout = "120s")]
fn our_own() {
    let server = Fixture::start();
    assert_eq!(get(&server.url("")).unwrap().body, HELLO.as_bytes());
    assert_eq!(get(&server.url("/none")).unwrap().status, 404);
    assert_eq!(get(&server.url("/stream")).unwrap().body, b"onetwo");
    let broken = get(&server.url("/broken")).unwrap_err();
    assert_eq!(broken.kind(), ErrorKind::UnexpectedEof);
    for bad in ["ftp://x/", "http://", "http:///", "http://x/a b"] {
        assert_eq!(get(bad).unwrap_err().kind(), ErrorKind::InvalidInput, "{bad}");
    }
    server.stop();
}
