//! What `wc` counts.

use std::ops::Add;

/// Totals of some files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) files: u64,
    pub(super) lines: u64,
    pub(super) words: u64,
    pub(super) bytes: u64,
}

impl Add for Totals {
    type Output = Totals;

    fn add(self, other: Totals) -> Totals {
        Totals {
            files: self.files + other.files,
            lines: self.lines + other.lines,
            words: self.words + other.words,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Of one file. A word begins with a printable character and ends with a blank, as in `wc`'s C
/// locale.
pub(super) fn count(text: &[u8]) -> Totals {
    let (mut lines, mut words, mut in_word) = (0, 0, false);
    for &byte in text {
        lines += u64::from(byte == b'\n');
        if byte.is_ascii_whitespace() || byte == b'\x0b' {
            in_word = false;
        } else if byte.is_ascii_graphic() && !in_word {
            in_word = true;
            words += 1;
        }
    }
    Totals { files: 1, lines, words, bytes: text.len() as u64 }
}
