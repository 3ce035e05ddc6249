//! Numbers and lists as the kernel writes them, read without allocating.

/// Cuts the spaces and line ends around a text off.
fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// A decimal number without a sign, alone in `text` but for spaces.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let digits = trim(text);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// The ranges of a list such as `0-3,8,10-11`, both ends included; `None` for what is no range.
///
/// An empty list, which the kernel writes for an empty set, has none.
pub(crate) fn ranges(list: &[u8]) -> impl Iterator<Item = Option<(u32, u32)>> {
    let list = trim(list);
    list.split(|byte| *byte == b',').filter(move |_| !list.is_empty()).map(range)
}

fn range(text: &[u8]) -> Option<(u32, u32)> {
    let mut ends = text.splitn(2, |byte| *byte == b'-');
    let first = u32::try_from(number(ends.next()?)?).ok()?;
    let last = match ends.next() {
        Some(last) => u32::try_from(number(last)?).ok()?,
        None => first,
    };
    (first <= last).then_some((first, last))
}

/// What follows `name` at the start of a line, up to the line's end.
pub(crate) fn field<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))
}
