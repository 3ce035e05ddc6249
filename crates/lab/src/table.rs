//! Tables, plain for the terminal and in Markdown.

use crate::stats::Quantiles;
use crate::summary::Summary;
use crate::text::{escaped, ms, percent};
use crate::traced::{ProcessorEvents, Span, Traced};
use crate::variant::{BUSY, POOL, THREADS, UNSTOPPED, YIELDS};
use std::fmt::Write;

/// Rows of cells; the first column is text, the others are numbers.
#[derive(Debug, PartialEq)]
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&str], rows: Vec<Vec<String>>) -> Table {
        Table { head: head.iter().map(|text| (*text).to_owned()).collect(), rows }
    }

    fn widths(&self) -> Vec<usize> {
        let column = |i: usize| {
            let cells = self.rows.iter().chain([&self.head]).filter_map(move |row| row.get(i));
            cells.map(String::len).max().unwrap_or(0)
        };
        (0..self.head.len()).map(column).collect()
    }

    /// Columns of equal width, with two spaces between them.
    pub(crate) fn plain(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for row in [&self.head].into_iter().chain(&self.rows) {
            let _ = writeln!(text, "{}", aligned(row, &widths).join("  ").trim_end());
        }
        text
    }

    /// A table of Markdown that is readable as it stands, too.
    pub(crate) fn markdown(&self) -> String {
        let widths: Vec<usize> = self.widths().iter().map(|width| (*width).max(4)).collect();
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(aligned(&self.head, &widths));
        let rule = widths.iter().enumerate().map(|(i, width)| match i {
            0 => "-".repeat(*width),
            _ => format!("{}:", "-".repeat(width - 1)),
        });
        text.push_str(&line(rule.collect()));
        for row in &self.rows {
            text.push_str(&line(aligned(row, &widths)));
        }
        text
    }

    /// A table of HTML.
    pub(crate) fn html(&self) -> String {
        let cells = |tag: &str, row: &[String]| {
            let each = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
            format!("<tr>{}</tr>", each.collect::<String>())
        };
        let rows: String = self.rows.iter().map(|row| cells("td", row)).collect();
        format!(
            "<div class=scroll><table><thead>{}</thead><tbody>{rows}</tbody></table></div>",
            cells("th", &self.head)
        )
    }
}

fn aligned(row: &[String], widths: &[usize]) -> Vec<String> {
    let cell = |(i, (text, width)): (usize, (&String, &usize))| match i {
        0 => format!("{text:<width$}"),
        _ => format!("{text:>width$}"),
    };
    row.iter().zip(widths).enumerate().map(cell).collect()
}

fn row(summary: &Summary, figures: impl IntoIterator<Item = f64>) -> Vec<String> {
    let mut row = vec![summary.variant.clone(), summary.procs.to_string()];
    row.extend(figures.into_iter().map(ms));
    row
}

/// The most telling columns of every cell, narrow enough for a terminal.
pub(crate) fn overview(summaries: &[Summary]) -> Table {
    let figures = |s: &Summary| {
        row(
            s,
            [
                s.wait.p50,
                s.wait.max,
                s.own.p50,
                s.own.max,
                s.done.p50,
                s.done.p99,
                s.done.max,
                s.late_any_time.p50,
                s.late_any_time.p99,
                s.late_any_time.max,
            ],
        )
    };
    let head = [
        "ms", "procs", "wait p50", "max", "own p50", "max", "done p50", "p99", "max", "late p50",
        "p99", "max",
    ];
    Table::new(&head, summaries.iter().map(figures).collect())
}

/// The distribution of one quantity.
pub(crate) fn distribution(summaries: &[Summary], of: fn(&Summary) -> &Quantiles) -> Table {
    let figures = |s: &Summary| {
        let q = of(s);
        row(s, [q.min, q.p50, q.p90, q.p99, q.max, q.mean])
    };
    let head = ["ms", "procs", "min", "p50", "p90", "p99", "max", "mean"];
    Table::new(&head, summaries.iter().map(figures).collect())
}

/// How late the probe woke, beside what the machine does to it alone.
pub(crate) fn probe(summaries: &[Summary]) -> Table {
    let figures = |s: &Summary| {
        let (alone, late, any) = (&s.alone, &s.late, &s.late_any_time);
        let figures =
            [alone.p50, alone.max, late.p50, late.p90, late.max, any.p50, any.p90, any.p99];
        let mut row = row(s, figures);
        row.insert(2, s.probe_samples.to_string());
        row
    };
    let head = [
        "ms",
        "procs",
        "sleeps",
        "alone p50",
        "max",
        "late p50",
        "p90",
        "max",
        "any time p50",
        "p90",
        "p99",
    ];
    Table::new(&head, summaries.iter().map(figures).collect())
}

/// The probe's lateness at any time on the fewest processors, beside who computes.
pub(crate) fn lesson(summaries: &[Summary]) -> Table {
    let fewest = summaries.iter().map(|s| s.procs).min();
    let rows = [UNSTOPPED, YIELDS, BUSY, THREADS, POOL].iter().filter_map(|name| {
        let s = summaries.iter().find(|s| s.variant == *name && Some(s.procs) == fewest)?;
        let late = &s.late_any_time;
        Some(row(s, [late.p50, late.p90, late.p99, late.max, s.done.p50, s.done.max]))
    });
    let head = ["ms", "procs", "late p50", "p90", "p99", "max", "done p50", "max"];
    Table::new(&head, rows.collect())
}

/// The events of each traced repetition, processor by processor.
pub(crate) fn traces(traces: &[Traced]) -> Table {
    let of = |traced: &Traced, processor: &ProcessorEvents| {
        let p = processor.p.map_or_else(|| "-".to_owned(), |p| format!("P{p}"));
        let busy = percent(processor.busy_ns as f64, traced.span_ns as f64);
        let mut row = vec![traced.variant.clone(), traced.procs.to_string(), p, busy];
        row.push(processor.total().to_string());
        row.extend(KINDS.iter().map(|(_, kind)| processor.count(kind).to_string()));
        row
    };
    let rows = traces
        .iter()
        .flat_map(|traced| traced.processors.iter().map(move |processor| of(traced, processor)));
    let mut head = vec!["", "procs", "P", "busy", "events"];
    head.extend(KINDS.iter().map(|(title, _)| *title));
    Table::new(&head, rows.collect())
}

/// Kinds of events that have a column, with its title.
const KINDS: [(&str, &str); 10] = [
    ("ProcStart", "ProcStart"),
    ("ProcStop", "ProcStop"),
    ("ProcSteal", "ProcSteal"),
    ("GoCreate", "GoCreate"),
    ("GoStart", "GoStart"),
    ("GoStop", "GoStop"),
    ("GoBlock", "GoBlock"),
    ("GoUnblock", "GoUnblock"),
    ("GoDestroy", "GoDestroy"),
    ("GoSyscall", "GoSyscallBegin"),
];

/// Stops of the world, collections and changes of GOMAXPROCS in each traced repetition.
pub(crate) fn ranges(traces: &[Traced]) -> Table {
    let spans = |traced: &Traced, kind: &str, spans: &[Span]| {
        let row = |span: &Span| {
            let (name, procs) = (traced.variant.clone(), traced.procs.to_string());
            let (from, took) = (ms(span.from_ns as f64), ms(span.took_ns as f64));
            vec![name, procs, kind.to_owned(), span.what.clone(), from, took]
        };
        spans.iter().map(row).collect::<Vec<_>>()
    };
    let rows = traces.iter().flat_map(|traced| {
        let stops = spans(traced, "STW", &traced.stops);
        stops.into_iter().chain(spans(traced, "GC", &traced.collections))
    });
    Table::new(&["", "procs", "range", "what", "at ms", "took ms"], rows.collect())
}

/// What the machine and the scheduler did.
pub(crate) fn scheduler(summaries: &[Summary]) -> Table {
    let figures = |s: &Summary| {
        let mut row = row(s, [s.elapsed_ns, s.cpu_ns]);
        let c = &s.counts;
        let hand_offs = c.declared_hand_offs + c.undeclared_hand_offs;
        let counts = [
            c.scheduled,
            c.runs_in_place,
            c.direct_switches,
            c.steals,
            c.timers,
            c.stops,
            hand_offs,
        ];
        row.push(format!("{:.1}", s.peak_rss_bytes as f64 / 1e6));
        row.push(s.open_at_once.to_string());
        row.extend(counts.map(|count| count.to_string()));
        row
    };
    let head = [
        "",
        "procs",
        "elapsed ms",
        "CPU ms",
        "peak MB",
        "open at once",
        "scheduled",
        "runs in place",
        "direct switches",
        "steals",
        "timers",
        "stops",
        "hand-offs",
    ];
    Table::new(&head, summaries.iter().map(figures).collect())
}

#[cfg(test)]
mod tests {
    use super::Table;

    fn table() -> Table {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        Table::new(&["ms", "procs", "p50"], vec![row(["busy", "1", "5120"])])
    }

    #[test]
    fn plain() {
        assert_eq!(table().plain(), "ms    procs   p50\nbusy      1  5120\n");
    }

    #[test]
    fn markdown() {
        let lines =
            ["| ms   | procs |  p50 |", "| ---- | ----: | ---: |", "| busy |     1 | 5120 |"];
        assert_eq!(table().markdown(), lines.join("\n") + "\n");
    }
}
