//! Inputs for parsers, made by chance from good ones. Tests of parsers take this file in by its path.
//!
//! In tests there are some, always the same; `cargo xtask fuzz` runs them for as long as
//! one likes: the variable `GOSCHED_FUZZ_SECS` says how long, and `GOSCHED_FUZZ_SEED` where to begin.
//! An input that makes the parser panic is printed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Good inputs that were found, besides the first ones.
const FOUND_MAX: usize = 256;

/// Numbers that are the last or the first of something.
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "00",
    "127",
    "256",
    "65536",
    "2147483648",
    "4294967296",
    "9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999",
];

/// splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % n.max(1) as u64) as usize
    }

    /// A range in `len` bytes, rarely a long one.
    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let start = self.below(len + 1);
        let longest = if self.below(8) == 0 { len } else { 8 };
        start..(start + self.below(longest + 1)).min(len)
    }
}

/// Changes `bytes` in one place; `other` is another input to take from.
fn change(bytes: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    let at = chance.below(bytes.len() + 1);
    match chance.below(9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        1 if at < bytes.len() => bytes[at] = chance.below(256) as u8,
        2 => bytes.insert(at, [0, b' ', b'\n', b'\r', b',', b':', b'=', 0xff][chance.below(8)]),
        3 => drop(bytes.drain(chance.range(bytes.len()))),
        4 => {
            let again = bytes[chance.range(bytes.len())].to_vec();
            bytes.splice(at..at, again);
        }
        5 => drop(bytes.splice(at..at, other[chance.range(other.len())].iter().copied())),
        6 => bytes.truncate(at),
        7 => {
            let digits = bytes.iter().skip(at).take_while(|b| b.is_ascii_digit()).count();
            let number = NUMBERS[chance.below(NUMBERS.len())];
            bytes.splice(at..at + digits, number.bytes());
        }
        _ => {
            let half = other.len() / 2;
            bytes.truncate(at);
            bytes.extend_from_slice(&other[half.min(chance.below(other.len() + 1))..]);
        }
    }
}

/// Has `accepts` look at `count` inputs made from `good` ones; it says whether it has understood one.
/// Prints the share of those.
///
/// # Panics
/// If `accepts` does; if it understands all or nothing, which shows nothing.
pub(crate) fn run(name: &str, count: u64, good: &[&[u8]], mut accepts: impl FnMut(&[u8]) -> bool) {
    let number = |variable: &str| std::env::var(variable).ok()?.parse::<u64>().ok();
    let time = number("GOSCHED_FUZZ_SECS").map(Duration::from_secs);
    let seed = number("GOSCHED_FUZZ_SEED").unwrap_or(20_260);
    let (mut chance, start) = (Chance(seed), Instant::now());
    let (mut inputs, mut accepted) = (0_u64, 0_u64);
    let mut found: Vec<Vec<u8>> = good.iter().map(|input| input.to_vec()).collect();
    for input in good {
        assert!(accepts(input), "{name}: not understood: {}", input.escape_ascii());
    }
    while time.map_or(inputs < count, |time| start.elapsed() < time) {
        let mut input = found[chance.below(found.len())].clone();
        for _ in 0..1 + chance.below(4) {
            let other = chance.below(found.len());
            change(&mut input, &found[other], &mut chance);
        }
        inputs += 1;
        let is_good = catch_unwind(AssertUnwindSafe(|| accepts(&input))).unwrap_or_else(|panic| {
            println!("fuzz {name}: seed {seed}, input {inputs}: {}", input.escape_ascii());
            resume_unwind(panic)
        });
        if is_good {
            accepted += 1;
            let short = input.len() < 1 << 16;
            match found.len() - good.len() {
                len if len < FOUND_MAX && short => found.push(input),
                len if short => {
                    let at = good.len() + chance.below(len);
                    found[at] = input;
                }
                _ => {}
            }
        }
    }
    let percent = 100.0 * accepted as f64 / inputs.max(1) as f64;
    println!("fuzz {name}: {inputs} inputs, {accepted} understood ({percent:.1} %)");
    assert!(0 < accepted && accepted < inputs, "all or nothing shows nothing");
}
