//! Times as attributes write them: `"500ms"`, `"5s"`, `"2m"`, `"1h"`.

use std::fmt;
use std::num::IntErrorKind;
use std::time::Duration;

/// Why a text is not a time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DurationError {
    /// It doesn't begin with a whole number.
    NoNumber,
    /// The number has no unit, or one that isn't known.
    NoUnit,
    /// Nothing can be done in no time.
    Zero,
    /// It doesn't fit in milliseconds of 64 bits.
    TooLong,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNumber => "a time begins with a whole number, as in \"5s\"",
            Self::NoUnit => "a time ends with its unit, `ms`, `s`, `m` or `h`, as in \"5s\"",
            Self::Zero => "a time of zero leaves no room to run: leave it out for no limit",
            Self::TooLong => "the time is too long: leave it out for no limit",
        })
    }
}

/// Reads a whole number of milliseconds, seconds, minutes or hours.
pub(crate) fn parse(text: &str) -> Result<Duration, DurationError> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 =
        number.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => DurationError::TooLong,
            _ => DurationError::NoNumber,
        })?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(DurationError::NoUnit),
    };
    match number.checked_mul(unit_ms) {
        None => Err(DurationError::TooLong),
        Some(0) => Err(DurationError::Zero),
        Some(ms) => Ok(Duration::from_millis(ms)),
    }
}

#[cfg(test)]
mod tests;
