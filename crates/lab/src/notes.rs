//! NOTES.md: the tables, and what they say.

use crate::report::Document;
use crate::summary::Summary;
use crate::table;
use crate::variant::VARIANTS;
use crate::{plot, text};
use std::fmt::Write;

const MEASURES: &str = "\
## How it is measured

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
* Percentiles are nearest ranks.
  `results.json` has every goroutine and every sleep of the probe.
";

/// The notes of a run.
pub(crate) fn markdown(document: &Document) -> String {
    let summaries = document.summaries();
    let mut notes = format!("# Schedule forensics\n\n{}.\n\n", document.setup());
    variants(&mut notes);
    findings(&mut notes, document);
    tables(&mut notes, &summaries);
    plots(&mut notes, document);
    notes.push_str(MEASURES);
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

fn tables(notes: &mut String, summaries: &[Summary]) {
    let tables = [
        ("Completion since the start", table::distribution(summaries, |s| &s.done)),
        ("Wait to first run", table::distribution(summaries, |s| &s.wait)),
        ("Own run time", table::distribution(summaries, |s| &s.own)),
        ("Waiting or asleep after the first run", table::distribution(summaries, |s| &s.rest)),
        ("How late the probe woke", table::probe(summaries)),
        ("What the machine and the scheduler did", table::scheduler(summaries)),
    ];
    notes.push_str("\n## Tables\n");
    for (title, table) in tables {
        let _ = write!(notes, "\n### {title}\n\n{}", table.markdown());
    }
}

fn plots(notes: &mut String, document: &Document) {
    notes.push_str("\n## Plots\n\n");
    for plot in plot::all(&document.cells) {
        let _ = write!(notes, "![{}]({})\n\n", plot.title, plot.file);
    }
}
