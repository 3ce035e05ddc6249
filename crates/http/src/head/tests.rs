use super::{FIELDS_MAX, Framing, Head, Version};
use crate::refusal::Refusal;
use std::mem::MaybeUninit;

#[derive(Debug, PartialEq)]
struct Said {
    version: Version,
    framing: Framing,
    keeps_alive: bool,
    waits: bool,
}

fn parse(lines: &[&str]) -> Result<Said, Refusal> {
    let text = lines.join("\r\n") + "\r\n\r\n";
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let head = Head::parse(text.as_bytes(), &mut fields)?;
    Ok(Said {
        version: head.version,
        framing: head.framing,
        keeps_alive: head.keeps_alive,
        waits: head.waits_to_continue,
    })
}

/// A request with these fields beside the host.
fn with(fields: &[&str]) -> Result<Said, Refusal> {
    parse(&[&["POST / HTTP/1.1", "Host: x"], fields].concat())
}

fn framing(fields: &[&str]) -> Result<Framing, Refusal> {
    with(fields).map(|said| said.framing)
}

#[test]
fn request_lines() {
    let line = |line| parse(&[line, "Host: x"]).map(|said| said.version);
    for good in ["GET / HTTP/1.1", "OPTIONS * HTTP/1.1", "X-1 http://x/y?z HTTP/1.1"] {
        assert_eq!(line(good), Ok(Version::Http11), "{good}");
    }
    assert_eq!(line("GET / HTTP/1.0"), Ok(Version::Http10));
    let bad = [
        "GET",
        "GET /",
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET / x HTTP/1.1",
        "GET * HTTP/1.1",
        "GET x HTTP/1.1",
        "GET /#a HTTP/1.1",
        "G(T / HTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/1",
        "GET / HTTP/1.x",
        "GET\t/ HTTP/1.1",
        "GET /\u{1} HTTP/1.1",
    ];
    for bad in bad {
        assert_eq!(line(bad), Err(Refusal::Malformed), "{bad}");
    }
    for other in ["GET / HTTP/2.0", "GET / HTTP/0.9", "GET / HTTP/1.2"] {
        assert_eq!(line(other), Err(Refusal::Version), "{other}");
    }
    assert_eq!(line("CONNECT x:80 HTTP/1.1"), Err(Refusal::NotImplemented));
}

#[test]
fn fields() {
    let bad = [
        "a",
        "a : b",
        " a: b",
        "a: b\r\n c",
        ": b",
        "a\u{1}: b",
        "a: \u{1}",
        "a: b\rc",
        "a: \0",
        "Host: x",
        "(: b",
    ];
    for bad in bad {
        assert_eq!(with(&[bad]), Err(Refusal::Malformed), "{bad:?}");
    }
    for good in ["a:b", "a:", "a: \tb ", "a: \u{e4}", "!#$%&'*+-.^_`|~0: b"] {
        assert!(with(&[good]).is_ok(), "{good:?}");
    }
    let mut many = vec!["a: b"; FIELDS_MAX - 1];
    assert!(with(&many).is_ok());
    many.push("a: b");
    assert_eq!(with(&many), Err(Refusal::HeadTooLarge));
}

#[test]
fn hosts() {
    assert_eq!(parse(&["GET / HTTP/1.1"]), Err(Refusal::Malformed));
    assert!(parse(&["GET / HTTP/1.0"]).is_ok());
    for good in ["Host:", "Host: [::1]:80", "Host: a-b.c:80"] {
        assert!(parse(&["GET / HTTP/1.1", good]).is_ok(), "{good}");
    }
    for bad in ["Host: a b", "Host: a/b", "Host: a@b", "Host: a, b", "Host: \u{e4}"] {
        assert_eq!(parse(&["GET / HTTP/1.1", bad]), Err(Refusal::Malformed), "{bad}");
    }
}

#[test]
fn lengths() {
    assert_eq!(framing(&[]), Ok(Framing::Length(0)));
    assert_eq!(framing(&["Content-Length: 12"]), Ok(Framing::Length(12)));
    assert_eq!(framing(&["content-length: 7", "Content-Length: 7"]), Ok(Framing::Length(7)));
    let most = format!("Content-Length: {}", u64::MAX);
    assert_eq!(framing(&[&most]), Ok(Framing::Length(u64::MAX)));
    let bad = ["", "-1", "+1", "1 2", "1,1", "0x1", "1.0", "99999999999999999999", "a"];
    for bad in bad {
        assert_eq!(framing(&[&format!("Content-Length: {bad}")]), Err(Refusal::Malformed), "{bad}");
    }
    let differ = ["Content-Length: 1", "Content-Length: 2"];
    assert_eq!(framing(&differ), Err(Refusal::Malformed));
}

#[test]
fn codings() {
    assert_eq!(framing(&["Transfer-Encoding: chunked"]), Ok(Framing::Chunked));
    assert_eq!(framing(&["transfer-encoding: , CHUNKED"]), Ok(Framing::Chunked));
    assert_eq!(framing(&["Transfer-Encoding: gzip, chunked"]), Err(Refusal::NotImplemented));
    let two = ["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"];
    assert_eq!(framing(&two), Err(Refusal::NotImplemented));
    let both = ["Transfer-Encoding: chunked", "Content-Length: 3"];
    assert_eq!(framing(&both), Err(Refusal::Malformed));
    for bad in ["", "gzip", "chunked, chunked", "chunked, gzip", "xchunked", "\u{b}chunked"] {
        let field = format!("Transfer-Encoding: {bad}");
        assert_eq!(framing(&[&field]), Err(Refusal::Malformed), "{bad}");
    }
    let old = ["POST / HTTP/1.0", "Transfer-Encoding: chunked"];
    assert_eq!(parse(&old), Err(Refusal::Malformed));
}

#[test]
fn connections() {
    let keeps = |version, field| {
        parse(&[&format!("GET / HTTP/{version}"), "Host: x", field]).map(|said| said.keeps_alive)
    };
    assert_eq!(keeps("1.1", "a: b"), Ok(true));
    assert_eq!(keeps("1.1", "Connection: x, Close"), Ok(false));
    assert_eq!(keeps("1.0", "a: b"), Ok(false));
    assert_eq!(keeps("1.0", "Connection: Keep-Alive"), Ok(true));
    assert_eq!(keeps("1.0", "Connection: keep-alive, close"), Ok(false));
}

#[test]
fn expectations() {
    let waits = |fields: &[&str]| with(fields).map(|said| said.waits);
    assert_eq!(waits(&["Expect: 100-Continue", "Content-Length: 1"]), Ok(true));
    assert_eq!(waits(&["Expect: 100-continue"]), Ok(false));
    assert_eq!(waits(&["Expect: a-coffee"]), Err(Refusal::Expectation));
}

/// No head makes the parser panic, and one that is taken has one end, at the end.
#[test]
fn damaged_heads_end_nothing() {
    let good: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\nConnection: close\r\n\r\n",
        b"PUT /a HTTP/1.1\r\nhost:x:80\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: [::1]:8080\r\nX-A: \x80\xff\t b\r\n\r\n",
        b"GET http://x/y HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    ];
    crate::fuzz::run("http", 3_000, &good, |head| {
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let taken = Head::parse(head, &mut fields);
        assert!(taken.is_err() || head.ends_with(b"\n"), "there is more");
        taken.is_ok()
    });
}
