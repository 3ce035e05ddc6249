//! Text for standard error, put together in a buffer on the stack and written at once.

/// Fits the report with a name of a hundred bytes; what does not fit is cut off.
const CAPACITY: usize = 512;

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A text under construction.
pub(super) struct Text {
    bytes: [u8; CAPACITY],
    len: usize,
}

impl Text {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; CAPACITY], len: 0 }
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        text.bytes().for_each(|byte| self.byte(byte));
        self
    }

    /// Text from elsewhere: what could be taken for our own punctuation becomes `?`.
    pub(super) fn foreign(&mut self, text: &[u8]) -> &mut Self {
        for byte in text {
            self.byte(if byte.is_ascii_control() || *byte == b'"' { b'?' } else { *byte });
        }
        self
    }

    pub(super) fn decimal(&mut self, value: u64) -> &mut Self {
        self.digits::<10>(value)
    }

    /// With `0x` in front.
    pub(super) fn hex(&mut self, value: usize) -> &mut Self {
        self.text("0x").digits::<16>(value as u64)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Writes everything to standard error. Gives up on an error: there is nobody to tell.
    pub(super) fn print(&self) {
        let mut rest = self.as_bytes();
        while !rest.is_empty() {
            match write_once(rest) {
                Some(count) => rest = rest.get(count..).unwrap_or_default(),
                None => return,
            }
        }
    }

    fn digits<const BASE: u64>(&mut self, mut value: u64) -> &mut Self {
        let mut digits = [0; 20];
        let mut count = 0;
        for place in digits.iter_mut().rev() {
            *place = HEX_DIGITS[(value % BASE) as usize];
            count += 1;
            value /= BASE;
            if value == 0 {
                break;
            }
        }
        digits.iter().skip(digits.len() - count).for_each(|digit| self.byte(*digit));
        self
    }

    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }
}

/// Bytes written, or `None` if no more can be.
fn write_once(bytes: &[u8]) -> Option<usize> {
    loop {
        // SAFETY: `bytes` is valid for reads of its length. The system call is made directly, as
        // libc's `write` is a cancellation point.
        let count = unsafe {
            libc::syscall(libc::SYS_write, libc::STDERR_FILENO, bytes.as_ptr(), bytes.len())
        };
        if let Ok(count) = usize::try_from(count) {
            return (count > 0).then_some(count);
        }
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}
