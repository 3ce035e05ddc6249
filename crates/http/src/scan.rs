//! Where a head ends, found while it comes in.
//!
//! Each byte is looked at once, however the head is cut into pieces, and the answer does not depend
//! on the pieces. Lines end in CR LF: one that ends in LF alone is refused, since whoever stands in
//! front of the server may count lines differently.

use crate::refusal::Refusal;

/// How far a head has been looked at.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Where the request line begins: after one empty line, which old clients send behind a body.
    begin: usize,
    /// Where the present line begins.
    line: usize,
    seen: usize,
}

/// A head: what is between the empty lines, the one at its end included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) begin: usize,
    pub(crate) end: usize,
}

impl Scan {
    /// Goes on with `bytes`, which begin with what it has seen already.
    ///
    /// # Errors
    /// A head that can't be one, or is longer than `limit`.
    pub(crate) fn advance(&mut self, bytes: &[u8], limit: usize) -> Result<Option<Found>, Refusal> {
        let within = &bytes[..bytes.len().min(limit)];
        while let Some(at) = within[self.seen..].iter().position(|byte| *byte == b'\n') {
            let feed = self.seen + at;
            self.seen = feed + 1;
            if feed == 0 || within[feed - 1] != b'\r' {
                return Err(Refusal::Malformed);
            }
            let is_empty = feed - 1 == self.line;
            match (is_empty, self.line == self.begin, self.begin) {
                (true, true, 0) => self.begin = self.seen,
                (true, true, _) => return Err(Refusal::Malformed),
                (true, false, _) => {
                    self.check(within)?;
                    return Ok(Some(Found { begin: self.begin, end: self.seen }));
                }
                (false, ..) => {}
            }
            self.line = self.seen;
        }
        self.seen = within.len();
        self.check(within)?;
        match within.len() < limit {
            true => Ok(None),
            false if self.line == self.begin => Err(Refusal::TargetTooLong),
            false => Err(Refusal::HeadTooLarge),
        }
    }

    /// What doesn't begin with a method (a TLS greeting, say) need not be waited for.
    fn check(&self, bytes: &[u8]) -> Result<(), Refusal> {
        let first = bytes.get(self.begin).copied();
        match first {
            Some(b'\r') if self.begin == 0 => Ok(()),
            Some(byte) if !byte.is_ascii_alphabetic() => Err(Refusal::Malformed),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
