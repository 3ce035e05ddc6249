//! How numbers and results are written.

use crate::findings::Finding;
use crate::report::Document;
use crate::table;
use std::fmt::Write;

/// Width of the terminal's text.
const WIDTH: usize = 100;

/// A time in ms with three significant digits, at most three of them behind the point.
pub(crate) fn ms(ns: f64) -> String {
    let ms = ns / 1e6;
    let digits = match ms.abs() {
        large if large >= 99.95 => 0,
        medium if medium >= 9.995 => 1,
        small if small >= 0.9995 => 2,
        _ => 3,
    };
    format!("{ms:.digits$}")
}

/// A ratio.
pub(crate) fn times(ratio: f64) -> String {
    let digits = if ratio >= 9.95 { 0 } else { 1 };
    format!("{ratio:.digits$}")
}

/// A part of a whole in percent.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole == 0.0 { "0 %".to_owned() } else { format!("{:.0} %", 100.0 * part / whole) }
}

/// `count` of `noun`.
pub(crate) fn count(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// `text` as it stands in HTML and SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// All results for a terminal.
#[must_use]
pub fn terminal(document: &Document) -> String {
    let mut text = format!("{}\n\n", document.setup());
    let summaries = document.summaries();
    text.push_str(&table::overview(&summaries).plain());
    let _ =
        write!(text, "\nHow late a sleeper is beside them\n{}", table::lesson(&summaries).plain());
    // What each trace says is in the notes: a line for each event would be too much here.
    for finding in document.findings.iter().filter(|finding| !finding.is_about_a_trace) {
        let Finding { question, answer, .. } = finding;
        let _ = write!(text, "\n{question}\n{}\n", wrapped(&answer.join(" "), "  "));
    }
    for failure in &document.failures {
        let (cell, reason) = (&failure.cell, &failure.reason);
        let _ = write!(text, "\nNo numbers for {} at {}: {reason}\n", cell.variant, cell.procs);
    }
    text
}

/// `text` in lines that begin with `indent`.
pub(crate) fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![indent.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, String::len);
        if line > indent.len() && line + 1 + word.len() > WIDTH {
            lines.push(indent.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            if line.len() > indent.len() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, count, ms, percent, times, wrapped};

    #[test]
    fn three_digits() {
        let texts = [0.0, 64_000.0, 999_400.0, 1.0e6, 10.04e6, 123.4e6, 10.0e9].map(ms);
        assert_eq!(texts, ["0.000", "0.064", "0.999", "1.00", "10.0", "123", "10000"]);
    }

    #[test]
    fn other_figures() {
        assert_eq!([times(1.26), times(12.6)], ["1.3", "13"]);
        assert_eq!([percent(1.0, 4.0), percent(1.0, 0.0)], ["25 %", "0 %"]);
        assert_eq!([count(1, "CPU"), count(2, "CPU")], ["1 CPU", "2 CPUs"]);
    }

    #[test]
    fn lines_are_filled_and_lose_nothing() {
        let words = "word ".repeat(60);
        let text = wrapped(&words, "  ");
        assert!(text.lines().all(|line| line.starts_with("  word") && line.len() <= WIDTH));
        assert_eq!(text.split_whitespace().count(), 60);
    }
}
