use super::{Found, Scan};
use crate::refusal::Refusal;

/// The answer, which must not depend on how the bytes are cut.
#[track_caller]
fn check(bytes: &[u8], limit: usize, want: Result<Option<Found>, Refusal>) {
    assert_eq!(Scan::default().advance(bytes, limit), want, "at once");
    let mut scan = Scan::default();
    let mut last = Ok(None);
    for end in 1..=bytes.len() {
        last = scan.advance(&bytes[..end], limit);
        if last != Ok(None) {
            break;
        }
    }
    assert_eq!(last, want, "byte by byte");
}

fn found(begin: usize, end: usize) -> Result<Option<Found>, Refusal> {
    Ok(Some(Found { begin, end }))
}

#[test]
fn heads() {
    check(b"", 99, Ok(None));
    check(b"GET / HTTP/1.1\r\n", 99, Ok(None));
    check(b"GET / HTTP/1.1\r\n\r", 99, Ok(None));
    check(b"GET / HTTP/1.1\r\n\r\n", 99, found(0, 18));
    check(b"GET / HTTP/1.1\r\na: b\r\n\r\nGET", 99, found(0, 24));
}

#[test]
fn one_empty_line_before() {
    check(b"\r\n", 99, Ok(None));
    check(b"\r\nGET /\r\n\r\n", 99, found(2, 11));
    check(b"\r\n\r\n", 99, Err(Refusal::Malformed));
}

#[test]
fn line_feeds_alone() {
    check(b"GET / HTTP/1.1\n", 99, Err(Refusal::Malformed));
    check(b"GET / HTTP/1.1\r\n\n", 99, Err(Refusal::Malformed));
    check(b"\n", 99, Err(Refusal::Malformed));
}

#[test]
fn no_method() {
    check(b"\x16\x03\x01", 99, Err(Refusal::Malformed));
    check(b"\r\n ", 99, Err(Refusal::Malformed));
    check(b"!GET / HTTP/1.1\r\n\r\n", 99, Err(Refusal::Malformed));
}

#[test]
fn limits() {
    check(b"GET /\r\n\r\n", 9, found(0, 9));
    check(b"GET /\r\n\r\n", 8, Err(Refusal::HeadTooLarge));
    check(b"GET /abc", 8, Err(Refusal::TargetTooLong));
    check(b"GET /abcd\n", 8, Err(Refusal::TargetTooLong));
    check(b"GET /\r\na: b\r\n", 9, Err(Refusal::HeadTooLarge));
}
