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

/// What [`encode_in_room`] wants to write into: an event, and what it writes behind it.
pub const EVENT_ROOM: usize = EVENT_PLACES + VARINT_MAX;

/// An event ends before that, a power of two.
const EVENT_PLACES: usize = 64;
const _: () = assert!(EVENT_MAX <= EVENT_PLACES && EVENT_PLACES.is_power_of_two());
/// No number takes as many, a power of two.
const NUMBER_PLACES: usize = 16;
const _: () = assert!(VARINT_MAX < NUMBER_PLACES && NUMBER_PLACES.is_power_of_two());

/// As [`encode`], where there is room for whatever event it is; how many bytes it took. What is behind
/// them is overwritten.
///
/// ```
/// use gosched_trace_format::{EVENT_ROOM, Kind, encode_in_room};
///
/// let mut out = [0; EVENT_ROOM];
/// assert_eq!(encode_in_room(&mut out, Kind::GoStart, 5, &[7, 300]), 5);
/// assert_eq!(out[..5], [16, 5, 7, 0xac, 2]);
/// ```
#[inline(always)]
pub fn encode_in_room<const N: usize>(
    out: &mut [u8; EVENT_ROOM],
    kind: Kind,
    dt: u64,
    args: &[u64; N],
) -> usize {
    const { assert!(N < 5, "no event is longer than EVENT_MAX") };
    debug_assert_eq!(crate::spec(kind as u8).map(|spec| spec.args.len()), Some(args.len()));
    out[0] = kind as u8;
    let mut len = 1 + put_varint(out, 1, dt);
    // Compilers leave a loop with so much in it a loop, and its branches guess badly for all at once.
    if N > 0 {
        len += put_varint(out, len, args[0]);
    }
    if N > 1 {
        len += put_varint(out, len, args[1]);
    }
    if N > 2 {
        len += put_varint(out, len, args[2]);
    }
    if N > 3 {
        len += put_varint(out, len, args[3]);
    }
    len
}

/// Writes a number at `at`; how many bytes that took. Most are short.
#[inline(always)]
fn put_varint(out: &mut [u8; EVENT_ROOM], at: usize, value: u64) -> usize {
    // What is written begins below that; said so that nothing is to be checked.
    let at = at % EVENT_PLACES;
    let room = &mut out[at..at + 4];
    if value < 1 << 7 {
        room[0] = value as u8;
        return 1;
    }
    if value < 1 << 14 {
        let spread = (value & 0x7f | (value & 0x3f80) << 1 | 0x80) as u16;
        room[..2].copy_from_slice(&spread.to_le_bytes());
        return 2;
    }
    if value < 1 << 28 {
        let value = value as u32;
        let halves = value & 0x3fff | (value & 0x0fff_c000) << 2;
        let spread = halves & 0x007f_007f | (halves & 0x3f80_3f80) << 1 | 0x8080;
        let is_long = value >= 1 << 21;
        let spread = spread | u32::from(is_long) << 23;
        room.copy_from_slice(&spread.to_le_bytes());
        return 3 + usize::from(is_long);
    }
    // Said so that the places behind it are known to be in the room, and not masked each.
    put_long_varint(out, at, value) % NUMBER_PLACES
}

#[cold]
#[inline(never)]
fn put_long_varint(out: &mut [u8; EVENT_ROOM], at: usize, value: u64) -> usize {
    out.get_mut(at..).and_then(|room| write_varint(room, value)).unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_an_event_agree() {
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]).chain([u64::MAX]);
        for value in edges {
            let (mut one, mut other) = ([0; EVENT_MAX], [0xff; EVENT_ROOM]);
            let args = [value, 300, value];
            let len = encode(&mut one, Kind::GoStatus, value, &args).expect("there is room");
            assert_eq!(encode_in_room(&mut other, Kind::GoStatus, value, &args), len);
            assert_eq!(one[..len], other[..len], "{value}");
        }
    }
}
