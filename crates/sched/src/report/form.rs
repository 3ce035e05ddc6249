//! The two forms of a report: Go's lines, and JSON.

use gosched_base::os;
use std::fmt::{self, Write};

/// Where a line grows before it is written.
const ROOM: usize = 4096;

pub(super) enum Value {
    Number(u64),
    Bool(bool),
    /// `nil` without.
    Maybe(Option<u64>),
    Words(&'static str),
    /// A goroutine's: the number, and why it waits.
    Status(u64, &'static str),
}

pub(super) struct Form {
    bytes: [u8; ROOM],
    len: usize,
    is_json: bool,
    /// Whether a comma comes first.
    is_first: bool,
}

impl Form {
    pub(super) fn new(is_json: bool) -> Form {
        Form { bytes: [0; ROOM], len: 0, is_json, is_first: true }
    }

    fn flush(&mut self) {
        os::write_all(2, &self.bytes[..self.len]);
        self.len = 0;
    }

    fn text(&mut self, text: fmt::Arguments<'_>) {
        // Neither numbers nor words fail.
        let _ = self.write_fmt(text);
    }

    fn comma(&mut self) {
        if self.is_json && !std::mem::take(&mut self.is_first) {
            self.text(format_args!(","));
        }
    }

    pub(super) fn begin(&mut self, ms: u64) {
        if self.is_json {
            self.is_first = false;
            self.text(format_args!("{{\"ms\":{ms}"));
        } else {
            self.text(format_args!("SCHED {ms}ms:"));
        }
    }

    pub(super) fn field(&mut self, name: &str, value: Value) {
        self.comma();
        if !self.is_json {
            match value {
                Value::Number(n) => self.text(format_args!(" {name}={n}")),
                Value::Bool(is) => self.text(format_args!(" {name}={is}")),
                Value::Maybe(Some(n)) => self.text(format_args!(" {name}={n}")),
                Value::Maybe(None) => self.text(format_args!(" {name}=nil")),
                Value::Words(words) => self.text(format_args!(" {name}={words}")),
                Value::Status(n, reason) => self.text(format_args!(" {name}={n}({reason})")),
            }
            return;
        }
        match value {
            Value::Number(n) | Value::Maybe(Some(n)) => self.text(format_args!("\"{name}\":{n}")),
            Value::Bool(is) => self.text(format_args!("\"{name}\":{is}")),
            Value::Maybe(None) => self.text(format_args!("\"{name}\":null")),
            Value::Words(words) => self.text(format_args!("\"{name}\":\"{words}\"")),
            Value::Status(n, reason) => {
                self.text(format_args!("\"{name}\":{n},\"reason\":\"{reason}\""));
            }
        }
    }

    /// A number for each processor. Go's lines put the first list there without a name.
    pub(super) fn list(&mut self, name: &str, label: &str, numbers: impl Iterator<Item = u64>) {
        self.comma();
        if self.is_json {
            self.text(format_args!("\"{name}\":["));
            for (i, n) in numbers.enumerate() {
                self.text(format_args!("{}{n}", if i == 0 { "" } else { "," }));
            }
            self.text(format_args!("]"));
        } else {
            self.text(format_args!(" {label}[ "));
            for n in numbers {
                self.text(format_args!("{n} "));
            }
            self.text(format_args!("]"));
        }
    }

    pub(super) fn end_line(&mut self) {
        if !self.is_json {
            self.text(format_args!("\n"));
            self.flush();
        }
    }

    pub(super) fn begin_items(&mut self, name: &str) {
        if self.is_json {
            self.comma();
            self.text(format_args!("\"{name}\":["));
            self.is_first = true;
        }
    }

    pub(super) fn begin_item(&mut self, letter: char, id: u64) {
        if self.is_json {
            self.comma();
            self.text(format_args!("{{\"id\":{id}"));
        } else {
            self.text(format_args!("  {letter}{id}:"));
        }
    }

    pub(super) fn end_item(&mut self) {
        if self.is_json {
            self.text(format_args!("}}"));
            self.is_first = false;
        }
        self.end_line();
    }

    pub(super) fn end_items(&mut self) {
        if self.is_json {
            self.text(format_args!("]"));
            self.is_first = false;
        }
    }

    pub(super) fn end(&mut self) {
        if self.is_json {
            self.text(format_args!("}}\n"));
        }
        self.flush();
    }
}

impl Write for Form {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.len == ROOM {
                self.flush();
            }
            self.bytes[self.len] = byte;
            self.len += 1;
        }
        Ok(())
    }
}
