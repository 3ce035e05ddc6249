//! Writing, without allocation as far as the scheduler does it.

use crate::event::{Kind, mark};
use crate::varint::{VARINT_MAX, write_varint};

/// What a file begins with.
pub const HEADER: &[u8; 16] = b"go 1.23 trace\0\0\0";
/// Stands for a thread where there is none.
pub const NO_THREAD: u64 = u64::MAX;
/// Longer strings are not read.
pub const STRING_MAX: usize = 1024;
/// Most bytes of an event with its time.
pub const EVENT_MAX: usize = 1 + 5 * VARINT_MAX;
/// Most bytes in a batch.
pub(crate) const PAYLOAD_MAX: usize = 64 << 10;

/// Writes an event at the head of `out`, `dt` ticks after the one before it in its batch; how many
/// bytes that took. `None`: there is no room, and nothing of use was written.
///
/// `args` are those of the kind's [`Spec`](crate::Spec).
///
/// ```
/// use gosched_trace_format::{EVENT_MAX, Kind, encode};
///
/// let mut out = [0; EVENT_MAX];
/// assert_eq!(encode(&mut out, Kind::GoStart, 5, &[7, 1]), Some(4));
/// assert_eq!(out[..4], [16, 5, 7, 1]);
/// ```
#[inline]
#[must_use]
pub fn encode(out: &mut [u8], kind: Kind, dt: u64, args: &[u64]) -> Option<usize> {
    debug_assert_eq!(crate::spec(kind as u8).map(|spec| spec.args.len()), Some(args.len()));
    *out.first_mut()? = kind as u8;
    let mut len = 1 + write_varint(&mut out[1..], dt)?;
    for arg in args {
        len += write_varint(&mut out[len..], *arg)?;
    }
    Some(len)
}

/// What a batch of strings begins with, before what [`encode_string`] writes.
pub const STRINGS: u8 = mark::STRINGS;

/// Writes a string under a number that is its own at the head of `out`; how many bytes that took. What
/// is longer than readers take is cut. `None` if there is no room.
///
/// ```
/// let mut out = [0; 8];
/// assert_eq!(gosched_trace_format::encode_string(&mut out, 7, "key"), Some(6));
/// assert_eq!(&out[..6], b"\x05\x07\x03key");
/// ```
#[must_use]
pub fn encode_string(out: &mut [u8], id: u64, text: &str) -> Option<usize> {
    let text = &text[..text.floor_char_boundary(STRING_MAX)];
    *out.first_mut()? = mark::STRING;
    let mut len = 1 + write_varint(&mut out[1..], id)?;
    len += write_varint(&mut out[len..], text.len() as u64)?;
    out.get_mut(len..len + text.len())?.copy_from_slice(text.as_bytes());
    Some(len + text.len())
}

/// What a batch of `size` bytes begins with: events of `thread`, the first one relative to `time`.
///
/// # Panics
/// If `size` is more than 64 KiB, the most that readers take.
///
/// ```
/// let mut out = Vec::new();
/// gosched_trace_format::batch_header(&mut out, 1, 100, 1000, 4);
/// assert_eq!(out, [1, 1, 100, 0xe8, 0x07, 4]);
/// ```
pub fn batch_header(out: &mut Vec<u8>, generation: u64, thread: u64, time: u64, size: usize) {
    assert!(size <= PAYLOAD_MAX, "batch_header: more than 64 KiB in a batch");
    out.push(mark::BATCH);
    [generation, thread, time, size as u64].into_iter().for_each(|n| push_varint(out, n));
}

/// The batch that says how many ticks a second has. Each generation has one.
pub fn frequency_batch(out: &mut Vec<u8>, generation: u64, time: u64, ticks_per_second: u64) {
    let mut payload = vec![mark::FREQUENCY];
    push_varint(&mut payload, ticks_per_second);
    batch_header(out, generation, NO_THREAD, time, payload.len());
    out.append(&mut payload);
}

pub(crate) fn push_varint(out: &mut Vec<u8>, value: u64) {
    let mut bytes = [0; VARINT_MAX];
    let len = write_varint(&mut bytes, value).unwrap_or(0);
    out.extend_from_slice(&bytes[..len]);
}
