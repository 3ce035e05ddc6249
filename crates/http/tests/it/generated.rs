//! Requests made by chance: valid ones get their answer, others any answer or none.

use crate::fixture::{Fixture, statuses};
use gosched::runtime;

const REQUESTS: u64 = 1_000;
const SEED: u64 = 20_260;

/// splitmix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn word(&mut self) -> String {
        let len = 1 + self.below(12);
        (0..len).map(|_| char::from(self.of(b"abcdefXYZ019-_."))).collect()
    }
}

/// A request to `/echo` that RFC 9112 allows, and its body.
fn valid(chance: &mut Chance) -> (Vec<u8>, Vec<u8>) {
    let body: Vec<u8> =
        (0..chance.below(300)).map(|_| chance.of(b"0123456789\r\n abc\x80\xff")).collect();
    let mut head = format!("{} /echo", chance.of(&["GET", "POST", "PUT", "X-Y"]));
    if chance.below(2) == 0 {
        head += &format!("?{}", chance.word());
    }
    head += " HTTP/1.1\r\n";
    let mut fields = vec![format!("{}: x", chance.of(&["Host", "host", "HOST"]))];
    for _ in 0..chance.below(8) {
        let space = chance.of(&["", " ", "\t ", "   "]);
        fields.push(format!("X-{}:{space}{}{space}", chance.word(), chance.word()));
    }
    let is_chunked = chance.below(2) == 0;
    fields.push(if is_chunked {
        chance.of(&["Transfer-Encoding: chunked", "transfer-encoding:Chunked"]).to_owned()
    } else {
        format!("Content-Length: {}", body.len())
    });
    let swapped = chance.below(fields.len());
    fields.swap(0, swapped);
    head += &fields.join("\r\n");
    head += "\r\n\r\n";
    let mut bytes = head.into_bytes();
    if is_chunked {
        chunks(chance, &body, &mut bytes);
    } else {
        bytes.extend_from_slice(&body);
    }
    (bytes, body)
}

fn chunks(chance: &mut Chance, mut body: &[u8], out: &mut Vec<u8>) {
    while !body.is_empty() {
        let (chunk, rest) = body.split_at(1 + chance.below(body.len()));
        body = rest;
        let extension = chance.of(&["", ";a", ";a=b", " ; a=\"b c\""]);
        out.extend_from_slice(format!("{:02x}{extension}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(chance.of(&["0\r\n\r\n", "00;x\r\nA: b\r\n\r\n"]).as_bytes());
}

/// Spoils some bytes.
fn spoil(chance: &mut Chance, bytes: &mut Vec<u8>) {
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len());
        match chance.below(4) {
            0 => bytes[at] = chance.next() as u8,
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, chance.of(b"\r\n\0 :\t\xff;,0")),
            _ => bytes.truncate(at.max(1)),
        }
    }
}

#[gosched::test(timeout = "240s")]
fn valid_ones_and_spoiled_ones() {
    let server = Fixture::start();
    let panics = runtime::panics();
    let mut chance = Chance(SEED);
    let (mut valids, mut refused) = (0, 0);
    for number in 0..REQUESTS {
        let (mut bytes, body) = valid(&mut chance);
        let piece = 1 + chance.below(bytes.len());
        if chance.below(5) < 3 {
            let got = talk(&server, &bytes, piece);
            let story = || format!("{number} of {SEED}: {}", String::from_utf8_lossy(&bytes));
            assert!(got.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", story());
            assert!(got.ends_with(&[b"\r\n\r\n", &body[..]].concat()), "{}", story());
            valids += 1;
        } else {
            spoil(&mut chance, &mut bytes);
            let got = talk(&server, &bytes, piece);
            refused += u64::from(got.starts_with(b"HTTP/1.1 4"));
        }
    }
    println!("{valids} of {REQUESTS} valid, {refused} refused, seed {SEED}");
    assert!(valids >= REQUESTS / 2);
    assert!(refused > 0);
    assert_eq!(runtime::panics(), panics);
    server.stop();
}

#[gosched::test(timeout = "240s")]
fn garbage() {
    let server = Fixture::start();
    let panics = runtime::panics();
    let mut chance = Chance(SEED + 1);
    for _ in 0..300 {
        let bytes: Vec<u8> = (0..1 + chance.below(2_000)).map(|_| chance.next() as u8).collect();
        talk(&server, &bytes, 700);
        // Behind a head that is fine it is the body's turn.
        let mut behind =
            b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        behind.extend_from_slice(&bytes);
        talk(&server, &behind, 700);
    }
    assert_eq!(statuses(&server.talk(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")), [200]);
    assert_eq!(runtime::panics(), panics);
    server.stop();
}

/// As the fixture's, for bodies that are not text.
fn talk(server: &Fixture, bytes: &[u8], piece: usize) -> Vec<u8> {
    use std::io::{Read, Write};
    let mut stream = server.connect();
    for part in bytes.chunks(piece) {
        if stream.write_all(part).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(gosched::net::Shutdown::Write);
    let mut got = Vec::new();
    let _ = stream.read_to_end(&mut got);
    got
}
