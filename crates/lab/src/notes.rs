//! NOTES.md: the tables, and what they say.

use crate::report::Document;
use crate::table::{self, Table};
use crate::variant::VARIANTS;
use crate::{figure, text};
use std::fmt::Write;

/// How it is measured, as a list of Markdown.
pub(crate) const MEASURES: &str = "\
* Each row of a table is one variant on one number of processors (GOMAXPROCS), in a process of its own.
* The work is a number of rounds of arithmetic, not a time: it was timed once on an undisturbed CPU, and every goroutine computes just as much.
* *Wait to first run* is the time from a goroutine's `go` to its first instruction.
* *Own run time* is the time that its computing took by the clock.
  What the kernel gives to other threads in the middle counts, and so does what a goroutine waits for that was stopped; what it waits for after a yield does not.
* *Completion* is when it had done its work, since the start, which is just before the first `go`.
* The *probe* is one more goroutine that sleeps 1 ms again and again, and notes how much later than asked it runs again.
  *Alone* is the same before the start.
  *Any time* counts the sleeps that it missed while it was late, too, each 1 ms less late than the one before: what a sleeper meets that is due at any time.
* *Open at once* is the largest number of goroutines that had run their first instruction and were not done.
* *Stops* counts how often the runtime stopped a goroutine between two instructions.
* *threads* and *pool* do the same without the runtime, in processes of their own.
  Threads may use *procs* CPUs, as far as there are so many; the pool has *procs* threads.
* *Peak MB* is the most memory that the process had resident, the lab's own records included.
* Traces are taken of repetitions that nothing else is computed from, of every variant with goroutines on the two smallest numbers of processors.
  At its end each calls `runtime::gc()` once, so that there is a GC range and a stop of the world to find.
  Times in what is said about a trace are since the first of the many goroutines was created.
* Percentiles are nearest ranks.
  `results.json` has every goroutine and every sleep of the probe.
";

/// The notes of a run.
pub(crate) fn markdown(document: &Document) -> String {
    let mut notes = format!("# Schedule forensics\n\n{}.\n\n", document.setup());
    notes.push_str("As a page with the drawings in it: [index.html](index.html).\n\n");
    variants(&mut notes);
    lesson(&mut notes, document);
    findings(&mut notes, document);
    notes.push_str("\n## Tables\n");
    for (title, table) in tables_of(document) {
        let _ = write!(notes, "\n### {title}\n\n{}", table.markdown());
    }
    plots(&mut notes, document);
    let _ = write!(notes, "## How it is measured\n\n{MEASURES}");
    notes
}

fn variants(notes: &mut String) {
    for variant in VARIANTS {
        let _ = writeln!(notes, "* **{}**: {}.", variant.name, variant.about);
    }
}

fn findings(notes: &mut String, document: &Document) {
    notes.push_str("\n## What the numbers say\n");
    for finding in &document.findings {
        let _ = write!(notes, "\n### {}\n\n{}\n", finding.question, finding.answer.join("\n"));
    }
    for failure in &document.failures {
        let (variant, procs) = (&failure.cell.variant, failure.cell.procs);
        let on = text::count(procs, "processor");
        let _ =
            write!(notes, "\nThere are no numbers for *{variant}* on {on}: {}.\n", failure.reason);
    }
}

/// What the experiment is about, before everything else.
fn lesson(notes: &mut String, document: &Document) {
    let table = table::lesson(&document.summaries());
    let _ = write!(notes, "\n## How late is a sleeper beside those who compute?\n\n");
    let _ = write!(notes, "{}", table.markdown());
}

/// Every table with its title.
pub(crate) fn tables_of(document: &Document) -> Vec<(&'static str, Table)> {
    let summaries = &document.summaries();
    let mut tables = vec![
        ("Completion since the start", table::distribution(summaries, |s| &s.done)),
        ("Wait to first run", table::distribution(summaries, |s| &s.wait)),
        ("Own run time", table::distribution(summaries, |s| &s.own)),
        ("Waiting or asleep after the first run", table::distribution(summaries, |s| &s.rest)),
        ("How late the probe woke", table::probe(summaries)),
        ("What the machine and the scheduler did", table::scheduler(summaries)),
    ];
    if !document.traces.is_empty() {
        let traces = &document.traces;
        tables.push(("Events in the traces, by P", table::traces(traces)));
        tables.push(("Stops of the world and collections in the traces", table::ranges(traces)));
    }
    tables
}

fn plots(notes: &mut String, document: &Document) {
    notes.push_str("\n## Plots\n\n");
    for figure in figure::all(document) {
        let _ = write!(notes, "![{}]({})\n\n", figure.title, figure.file);
    }
}
