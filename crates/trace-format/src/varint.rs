//! Unsigned LEB128, at most ten bytes.

/// The longest number in bytes.
pub const VARINT_MAX: usize = 10;

/// Writes `value` at the head of `out`; how many bytes that took. `None` if there is no room.
///
/// ```
/// let mut out = [0; 10];
/// assert_eq!(gosched_trace_format::write_varint(&mut out, 300), Some(2));
/// assert_eq!(out[..2], [0xac, 0x02]);
/// ```
#[inline]
#[must_use]
pub fn write_varint(out: &mut [u8], value: u64) -> Option<usize> {
    let (mut value, mut len) = (value, 0);
    while value >= 0x80 {
        *out.get_mut(len)? = value as u8 | 0x80;
        (value, len) = (value >> 7, len + 1);
    }
    *out.get_mut(len)? = value as u8;
    Some(len + 1)
}

/// The number at the head of `bytes`, which then begin after it. `None` if there is none, or one of
/// more than 64 bits; one that is longer than need be is a number too.
///
/// ```
/// let mut bytes = &[0xac, 0x02, 9][..];
/// assert_eq!(gosched_trace_format::read_varint(&mut bytes), Some(300));
/// assert_eq!(bytes, [9]);
/// ```
#[inline]
#[must_use]
pub fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for (i, byte) in bytes.iter().take(VARINT_MAX).enumerate() {
        let low = u64::from(byte & 0x7f);
        let shifted = low << (7 * i);
        if shifted >> (7 * i) != low {
            return None;
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = [0; VARINT_MAX];
            let len = write_varint(&mut out, value).expect("there is room");
            let mut bytes = &out[..len];
            assert_eq!(read_varint(&mut bytes), Some(value));
            assert!(bytes.is_empty());
            assert_eq!(write_varint(&mut out[..len - 1], value), None);
        }
    }

    #[test]
    fn a_padded_number_is_one_too() {
        assert_eq!(read_varint(&mut &[0x98, 0x80, 0x80, 0x80, 0][..]), Some(0x18));
    }

    #[test]
    fn what_is_cut_or_too_large_is_refused() {
        assert_eq!(read_varint(&mut &[0x80, 0x80][..]), None);
        assert_eq!(read_varint(&mut &[][..]), None);
        assert_eq!(read_varint(&mut &[0xff; 11][..]), None);
        assert_eq!(
            read_varint(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]),
            None
        );
    }
}
