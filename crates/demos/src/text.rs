//! A story as text for a terminal.

use crate::demo::Demo;
use crate::row::{Row, Story, Verdict};
use std::fmt::Write;
use std::time::Duration;

const WIDTH: usize = 96;
/// So many lines of a case's notes are shown.
const NOTES: usize = 6;

/// The table, what the cases had to say, and what it shows.
#[must_use]
pub fn story(demo: &Demo, story: &Story) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "\n{}", table(demo, &story.rows));
    for row in story.rows.iter().filter(|row| !row.notes.is_empty()) {
        let _ = writeln!(out, "{}:", row.case);
        for line in row.notes.iter().take(NOTES) {
            let _ = writeln!(out, "    {line}");
        }
        if row.notes.len() > NOTES {
            let _ = writeln!(out, "    ... and {} lines more", row.notes.len() - NOTES);
        }
        out.push('\n');
    }
    out.push_str("What it shows\n");
    for finding in &story.findings {
        let mark = if finding.shown { "  * " } else { "  * (not in this run) " };
        out.push_str(&wrapped(&format!("{mark}{}", finding.text), "    "));
    }
    out
}

fn table(demo: &Demo, rows: &[Row]) -> String {
    let mut lines = vec![vec![String::new(), String::new()]];
    lines[0].extend(demo.columns.iter().map(|name| heading(name)));
    for row in rows {
        let verdict = match row.verdict {
            Verdict::Wrong => "wrong",
            Verdict::Right => "right",
            Verdict::Plain => "",
        };
        let mut line = vec![verdict.to_owned(), row.case.clone()];
        line.extend(demo.columns.iter().map(|name| {
            row.figures.get(*name).map_or_else(|| "-".to_owned(), |value| figure(name, *value))
        }));
        lines.push(line);
    }
    let widths: Vec<usize> = (0..lines[0].len())
        .map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        let _ = writeln!(out, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
}

const UNITS: [&str; 3] = ["_ns", "_ps", "_bytes"];

fn heading(name: &str) -> String {
    let bare = UNITS.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
    bare.replace('_', " ")
}

/// A figure in the unit that its name ends with.
pub(crate) fn figure(name: &str, value: u64) -> String {
    if name.ends_with("_ns") {
        time(value)
    } else if name.ends_with("_ps") {
        format!("{:.1} ns", value as f64 / 1e3)
    } else if name.ends_with("_bytes") {
        bytes(value)
    } else {
        count(value)
    }
}

/// `12.3ms`.
pub(crate) fn time(ns: u64) -> String {
    format!("{:.1?}", Duration::from_nanos(ns))
}

/// `8.2 KiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let scaled = |shift: u32| bytes as f64 / (1_u64 << shift) as f64;
    match bytes {
        0..0x400 => format!("{bytes} B"),
        0x400..0x10_0000 => format!("{:.1} KiB", scaled(10)),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", scaled(20)),
        _ => format!("{:.1} GiB", scaled(30)),
    }
}

/// `1,000,000`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `text` in lines of the width of all that is printed.
#[must_use]
pub fn paragraph(text: &str) -> String {
    wrapped(text, "")
}

/// Lines of at most [`WIDTH`] characters; those after the first begin with `indent`.
pub(crate) fn wrapped(text: &str, indent: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    let lead = text.len() - text.trim_start().len();
    out.push_str(&text[..lead]);
    column += lead;
    let mut is_first = true;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if !is_first && column + 1 + len > WIDTH {
            out.push('\n');
            out.push_str(indent);
            column = indent.len();
        } else if !is_first {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += len;
        is_first = false;
    }
    out.push('\n');
    out
}
