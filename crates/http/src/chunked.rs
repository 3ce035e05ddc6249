//! The chunked coding (RFC 9112, 7.1), read strictly.
//!
//! Nothing that two readers could take differently is accepted: no sign, no `0x`, no space around
//! the size, no line without CR LF. Extensions and trailers are skipped, within a budget: they cost
//! their sender nothing else.

use crate::refusal::Refusal;

/// A size has at most so many digits, leading zeros included.
const DIGITS_MAX: u8 = 16;

/// What is between the chunks, and how much of the present chunk is left.
#[derive(Debug)]
pub(crate) struct Chunked {
    state: State,
    digits: u8,
    /// Of the chunk's data, once its size is known.
    left: u64,
    /// Bytes that extensions and trailers may still have.
    budget: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size,
    /// Spaces before the `;` of an extension.
    Space,
    Extension,
    SizeFeed,
    Data,
    DataReturn,
    DataFeed,
    /// At the beginning of a line behind the last chunk.
    Line,
    Trailer,
    TrailerFeed,
    LastFeed,
    End,
}

impl Chunked {
    pub(crate) fn new(budget: usize) -> Chunked {
        Chunked { state: State::Size, digits: 0, left: 0, budget }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state == State::End
    }

    /// How many bytes of data come next; 0 between the chunks.
    pub(crate) fn data_left(&self) -> u64 {
        if self.state == State::Data { self.left } else { 0 }
    }

    /// So many bytes of data have been taken.
    pub(crate) fn take(&mut self, bytes: u64) {
        self.left -= bytes;
        if self.left == 0 {
            self.state = State::DataReturn;
        }
    }

    /// Takes what is between the chunks, up to data or the end; returns how many bytes that is.
    ///
    /// # Errors
    /// What is not the coding.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        for (at, byte) in bytes.iter().enumerate() {
            if matches!(self.state, State::Data | State::End) {
                return Ok(at);
            }
            self.state = self.step(*byte)?;
        }
        Ok(bytes.len())
    }

    fn step(&mut self, byte: u8) -> Result<State, Refusal> {
        match (self.state, byte) {
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte),
            (State::Size, b'\r') if self.digits > 0 => Ok(State::SizeFeed),
            (State::Size | State::Space, b';') if self.digits > 0 => self.spend(State::Extension),
            (State::Size | State::Space, b' ' | b'\t') if self.digits > 0 => {
                self.spend(State::Space)
            }
            (State::Extension, b'\r') => Ok(State::SizeFeed),
            (State::Extension, b'\t' | b' '..=b'~' | 0x80..) => self.spend(State::Extension),
            (State::SizeFeed, b'\n') => Ok(self.sized()),
            (State::DataReturn, b'\r') => Ok(State::DataFeed),
            (State::DataFeed, b'\n') => Ok(State::Size),
            (State::Line, b'\r') => Ok(State::LastFeed),
            (State::Trailer, b'\r') => Ok(State::TrailerFeed),
            (State::Line | State::Trailer, b'\t' | b' '..=b'~' | 0x80..) => {
                self.spend(State::Trailer)
            }
            (State::TrailerFeed, b'\n') => Ok(State::Line),
            (State::LastFeed, b'\n') => Ok(State::End),
            _ => Err(Refusal::Malformed),
        }
    }

    fn digit(&mut self, byte: u8) -> Result<State, Refusal> {
        let digit = (byte as char).to_digit(16).ok_or(Refusal::Malformed)?;
        if self.digits == DIGITS_MAX {
            return Err(Refusal::Malformed);
        }
        self.digits += 1;
        self.left = self.left << 4 | u64::from(digit);
        Ok(State::Size)
    }

    /// The line of a size is over.
    fn sized(&mut self) -> State {
        self.digits = 0;
        if self.left > 0 { State::Data } else { State::Line }
    }

    fn spend(&mut self, next: State) -> Result<State, Refusal> {
        self.budget = self.budget.checked_sub(1).ok_or(Refusal::HeadTooLarge)?;
        Ok(next)
    }
}

#[cfg(test)]
mod tests;
