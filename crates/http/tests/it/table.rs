//! Requests and what they get, at once and byte by byte.

use crate::fixture::{Fixture, HELLO, statuses};

/// What is sent, the statuses that come back, and how the last answer ends.
struct Case {
    sent: &'static str,
    statuses: &'static [u16],
    ends: &'static str,
}

const fn case(sent: &'static str, statuses: &'static [u16], ends: &'static str) -> Case {
    Case { sent, statuses, ends }
}

/// The body of a refusal is its reason.
const BAD: &str = "\r\n\r\nBad Request";

const CASES: &[Case] = &[
    // Good ones.
    case("GET / HTTP/1.1\r\nHost: x\r\n\r\n", &[200], HELLO),
    case("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", &[200], HELLO),
    case("GET http://x/query?a=b HTTP/1.1\r\nHost: x\r\n\r\n", &[200], "a=b"),
    case("GET http://x HTTP/1.1\r\nHost: x\r\n\r\n", &[200], HELLO),
    case("GET /query?a?b HTTP/1.1\r\nHost: x\r\n\r\n", &[200], "a?b"),
    case("GET / HTTP/1.0\r\n\r\n", &[200], HELLO),
    case("GET /none HTTP/1.1\r\nHost: x\r\n\r\n", &[404], "not found\n"),
    case("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", &[404], "not found\n"),
    case("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", &[200], "charset=utf-8\r\n\r\n"),
    case("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n", &[200], "chunked\r\n\r\n"),
    case("GET /empty HTTP/1.1\r\nHost: x\r\n\r\n", &[204], "No Content\r\n\r\n"),
    case("GET /cached HTTP/1.1\r\nHost: x\r\n\r\n", &[304], "ETag: \"1\"\r\n\r\n"),
    case(
        "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n",
        &[200],
        "\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n",
    ),
    case("GET /stream HTTP/1.0\r\n\r\n", &[200], "Connection: close\r\n\r\nonetwo"),
    case("GET /broken HTTP/1.1\r\nHost: x\r\n\r\n", &[200], "\r\n\r\n3\r\none\r\n"),
    // Bodies.
    case("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", &[200], "\r\n\r\nabc"),
    case("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", &[200], "\r\n\r\n"),
    case(
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
         3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n",
        &[200],
        "\r\n\r\nabcde",
    ),
    // Several.
    case(
        "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /query?2 HTTP/1.1\r\nHost: x\r\n\r\n\
         GET /query?3 HTTP/1.1\r\nHost: x\r\n\r\n",
        &[200, 200, 200],
        "\r\n\r\n3",
    ),
    case(
        "POST /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc\
         POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n\
         GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[200, 200, 200],
        HELLO,
    ),
    case(
        "POST /ignore HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n\
         GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[200, 200],
        HELLO,
    ),
    case(
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
        &[200, 200],
        HELLO,
    ),
    // The connection ends: what follows is not answered.
    case(
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[200],
        HELLO,
    ),
    case("GET /close HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", &[200], "bye"),
    case("GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n", &[200], HELLO),
    case("nonsense\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", &[400], BAD),
    // Heads that are none.
    case("", &[], ""),
    case("\r\n", &[400], BAD),
    case("\r\n\r\n", &[400], BAD),
    case("GET / HT", &[400], BAD),
    case("GET / HTTP/1.1\r\nHost: x\r\n", &[400], BAD),
    case("GET / HTTP/1.1\nHost: x\n\n", &[400], BAD),
    case("GET / HTTP/1.1\r\nHost: x\n\r\n", &[400], BAD),
    case("GET / HTTP/1.1\r\n\r\n", &[400], BAD),
    case("GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", &[400], BAD),
    case("GET / HTTP/1.1\r\nHost: x\r\na: b\r\n c\r\n\r\n", &[400], BAD),
    case("GET / HTTP/1.1\r\nHost: x\r\na : b\r\n\r\n", &[400], BAD),
    case("GET / HTTP/1.1\r\nHost : x\r\n\r\n", &[400], BAD),
    case("GET / HTTP/1.1\r\nHost: x\r\na: \0\r\n\r\n", &[400], BAD),
    case("GET / HTTP/1.1\r\nHost: x\r\na: b\rc\r\n\r\n", &[400], BAD),
    case("GET /\r\n\r\n", &[400], BAD),
    case("!GET / HTTP/1.1\r\nHost: x\r\n\r\n", &[400], BAD),
    case("\x16\x03\x01\x02\r\n\r\n", &[400], BAD),
    case("GET / HTTP/2.0\r\nHost: x\r\n\r\n", &[505], "HTTP Version Not Supported"),
    case("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[505], "HTTP Version Not Supported"),
    case("CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", &[501], "Not Implemented"),
    case("HEAD / HTTP/1.1\r\n\r\n", &[400], "Connection: close\r\n\r\n"),
    // Bodies whose end can't be told.
    case(
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n\
         0\r\n\r\n",
        &[400],
        BAD,
    ),
    case(
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        &[400],
        BAD,
    ),
    case("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nabc", &[400], BAD),
    case("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc", &[400], BAD),
    case("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: x\r\n\r\n", &[400], BAD),
    case(
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        &[501],
        "Not Implemented",
    ),
    case("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &[400], BAD),
    case(
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
        &[400],
        BAD,
    ),
    case(
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
         fffffffffffffffff\r\na\r\n0\r\n\r\n",
        &[400],
        BAD,
    ),
    case(
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        &[400],
        BAD,
    ),
    case("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab", &[400], BAD),
    case(
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        &[400],
        BAD,
    ),
    case(
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n",
        &[413],
        "Content Too Large",
    ),
    case(
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
        &[413],
        "Content Too Large",
    ),
    case("POST / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n", &[417], "Expectation Failed"),
];

#[track_caller]
fn check(case: &Case, got: &str) {
    let Case { sent, statuses: want, ends } = case;
    assert_eq!(statuses(got), *want, "{sent:?}\n{got}");
    assert!(got.ends_with(ends), "{sent:?}\n{got}");
}

#[gosched::test(timeout = "240s")]
fn at_once() {
    let server = Fixture::start();
    for case in CASES {
        check(case, &server.talk(case.sent.as_bytes()));
    }
    server.stop();
}

#[gosched::test(timeout = "240s")]
fn byte_by_byte() {
    let server = Fixture::start();
    for case in CASES {
        let got = server.talk_in_pieces(case.sent.as_bytes(), 1);
        check(case, &got);
        assert_eq!(got, server.talk(case.sent.as_bytes()), "{:?}", case.sent);
    }
    server.stop();
}

/// At each byte there are two pieces, the second of which comes when the first has been received:
/// the server has answered all that was complete in it.
#[gosched::test(timeout = "240s")]
fn cut_at_every_byte() {
    const SENT: &[u8] = b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
        1\r\nz\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let server = Fixture::start();
    let want = server.talk(SENT);
    assert_eq!(statuses(&want), [200, 200]);
    for cut in 1..SENT.len() {
        assert_eq!(server.talk_in_pieces(SENT, cut), want, "{cut}");
    }
    server.stop();
}
