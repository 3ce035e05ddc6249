use super::Chunked;
use crate::refusal::Refusal;

/// The data of a body that comes in pieces of `piece` bytes, and how many bytes are left over.
/// `None`: it is not complete.
fn decode(bytes: &[u8], piece: usize) -> Result<Option<(Vec<u8>, usize)>, Refusal> {
    let mut chunked = Chunked::new(20);
    let mut data = Vec::new();
    let mut used = 0;
    while used < bytes.len() && !chunked.has_ended() {
        let part = &bytes[used..bytes.len().min(used + piece)];
        match chunked.data_left() {
            0 => used += chunked.advance(part)?,
            left => {
                let n = part.len().min(left as usize);
                data.extend_from_slice(&part[..n]);
                chunked.take(n as u64);
                used += n;
            }
        }
    }
    Ok(chunked.has_ended().then_some((data, bytes.len() - used)))
}

#[track_caller]
fn check(bytes: &str, want: Result<Option<(&str, usize)>, Refusal>) {
    for piece in [1, 2, 3, 1000] {
        let got = decode(bytes.as_bytes(), piece);
        let want = want.map(|whole| whole.map(|(data, rest)| (data.as_bytes().to_vec(), rest)));
        assert_eq!(got, want, "{bytes:?} in pieces of {piece}");
    }
}

#[test]
fn bodies() {
    check("0\r\n\r\n", Ok(Some(("", 0))));
    check("3\r\nabc\r\n0\r\n\r\n", Ok(Some(("abc", 0))));
    check("3\r\nabc\r\n0A\r\n0123456789\r\n000\r\n\r\nGET", Ok(Some(("abc0123456789", 3))));
    check("3;a=b\r\nabc\r\n0 ;c\r\nd: e\r\n\r\n", Ok(Some(("abc", 0))));
}

#[test]
fn not_complete() {
    for bytes in ["", "3", "3\r\nab", "3\r\nabc\r\n", "0\r\n", "0\r\n\r", "0\r\na: b\r\n"] {
        check(bytes, Ok(None));
    }
}

#[test]
fn sizes_that_are_none() {
    let bad =
        ["\r\n", " 3\r\n", "+3\r\n", "-3\r\n", "0x3\r\n", "3g\r\n", "3 \r\n", "3\n", ";a\r\n"];
    for bytes in bad {
        check(bytes, Err(Refusal::Malformed));
    }
    check("ffffffffffffffff\r\n", Ok(None));
    check("0ffffffffffffffff\r\n", Err(Refusal::Malformed));
}

#[test]
fn lines_that_are_none() {
    for bytes in ["3\r\nabcd\r\n", "3\r\nabc\n", "3;\x01\r\n", "3;a\rb", "0\r\n\n", "0\r\na\n"] {
        check(bytes, Err(Refusal::Malformed));
    }
}

#[test]
fn extensions_and_trailers_have_a_budget() {
    check("0;1234567890123456789\r\n\r\n", Ok(Some(("", 0))));
    check("0;12345678901234567890\r\n\r\n", Err(Refusal::HeadTooLarge));
    check("0\r\na: 4567890\r\nb: 4567890\r\n\r\n", Ok(Some(("", 0))));
    check("0\r\na: 4567890\r\nb: 45678901\r\n\r\n", Err(Refusal::HeadTooLarge));
}

/// A body says the same, or is refused, in whatever pieces it comes.
#[test]
fn damaged_bodies_are_read_alike_in_any_pieces() {
    let good: [&[u8]; 4] = [
        b"0\r\n\r\n",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"a;x=y\r\n0123456789\r\n001\r\n!\r\n0\r\nA: b\r\n\r\nrest",
        b"F \t;n\r\n012345678901234\r\n0\r\n\r\n",
    ];
    crate::fuzz::run("chunked", 3_000, &good, |body| {
        let whole = decode(body, body.len().max(1));
        for piece in [1, 2, 7] {
            assert_eq!(decode(body, piece), whole, "in pieces of {piece}");
        }
        matches!(whole, Ok(Some(_)))
    });
}
