//! The field `Date`, written anew once a second.

use httpdate::HttpDate;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The bytes of a date, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
const LEN: usize = 29;

/// The present date as text. Each connection has one, so nothing is shared.
#[derive(Debug)]
pub(crate) struct Date {
    second: u64,
    text: [u8; LEN],
}

impl Date {
    pub(crate) fn new() -> Date {
        let mut date = Date { second: 0, text: [0; LEN] };
        date.write(0);
        date
    }

    pub(crate) fn now(&mut self) -> &[u8] {
        let second = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        if second != self.second {
            self.write(second);
        }
        &self.text
    }

    fn write(&mut self, second: u64) {
        let at = UNIX_EPOCH.checked_add(Duration::from_secs(second)).unwrap_or(UNIX_EPOCH);
        // Its length is always the same.
        let _ = write!(&mut self.text[..], "{}", HttpDate::from(at));
        self.second = second;
    }
}

#[cfg(test)]
mod tests {
    use super::Date;

    #[test]
    fn is_the_form_of_rfc_9110() {
        let mut date = Date::new();
        assert_eq!(&date.text, b"Thu, 01 Jan 1970 00:00:00 GMT");
        date.write(784_111_777);
        assert_eq!(&date.text, b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(date.now().ends_with(b" GMT"));
    }
}
