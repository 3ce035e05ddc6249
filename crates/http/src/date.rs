//! The field `Date`, written anew once a second.

use httpdate::HttpDate;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The bytes of a line such as `Date: Sun, 06 Nov 1994 08:49:37 GMT`, with its end.
const LEN: usize = 37;

/// The present date as a line. Each connection has one, so nothing is shared.
#[derive(Debug)]
pub(crate) struct Date {
    second: u64,
    line: [u8; LEN],
}

impl Date {
    pub(crate) fn new() -> Date {
        let mut date = Date { second: 0, line: [0; LEN] };
        date.write(0);
        date
    }

    pub(crate) fn now(&mut self) -> &[u8] {
        let second = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        if second != self.second {
            self.write(second);
        }
        &self.line
    }

    fn write(&mut self, second: u64) {
        let at = UNIX_EPOCH.checked_add(Duration::from_secs(second)).unwrap_or(UNIX_EPOCH);
        // Its length is always the same.
        let _ = write!(&mut self.line[..], "Date: {}\r\n", HttpDate::from(at));
        self.second = second;
    }
}

#[cfg(test)]
mod tests {
    use super::Date;

    #[test]
    fn is_the_form_of_rfc_9110() {
        let mut date = Date::new();
        assert_eq!(&date.line, b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
        date.write(784_111_777);
        assert_eq!(&date.line, b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        assert!(date.now().ends_with(b" GMT\r\n"));
    }
}
