//! The results as one document, and the folder that keeps them.

use crate::findings::{self, Finding};
use crate::record::Measured;
use crate::run::{Failure, Run};
use crate::summary::Summary;
use crate::text::{count, ms};
use crate::traced::Traced;
use crate::{figure, notes, page};
use serde::Serialize;
use std::path::Path;
use std::{fs, io};

/// All results of a run; as JSON what `gosched lab --json` prints.
#[derive(Debug, Serialize)]
pub struct Document {
    /// The version of the runtime.
    pub version: &'static str,
    /// CPUs that the process may use.
    pub cpus: usize,
    /// Goroutines in each cell.
    pub goroutines: usize,
    /// What each of them had to do.
    pub work_ns: u64,
    /// The same in rounds of computing.
    pub rounds: u64,
    /// Every cell that succeeded.
    pub cells: Vec<CellResult>,
    /// What the traces of the repetitions say.
    pub traces: Vec<Traced>,
    /// What the numbers say.
    pub findings: Vec<Finding>,
    /// Every cell that did not succeed.
    pub failures: Vec<Failure>,
}

/// One cell, with what is computed from it.
#[derive(Debug, Serialize)]
pub struct CellResult {
    /// All that was measured.
    #[serde(flatten)]
    pub measured: Measured,
    /// The same in a few numbers.
    pub summary: Summary,
}

impl Document {
    /// Computes everything that follows from the numbers of `run`.
    #[must_use]
    pub fn of(run: Run) -> Document {
        let summaries: Vec<Summary> = run.measured.iter().map(Summary::of).collect();
        let findings = findings::all(&summaries, &run.traced, run.cpus);
        let cells = run.measured.into_iter().zip(summaries);
        Document {
            version: gosched::runtime::version(),
            cpus: run.cpus,
            goroutines: run.plan.goroutines,
            work_ns: run.plan.work.as_nanos() as u64,
            rounds: run.rounds,
            cells: cells.map(|(measured, summary)| CellResult { measured, summary }).collect(),
            traces: run.traced,
            findings,
            failures: run.failures,
        }
    }

    pub(crate) fn summaries(&self) -> Vec<Summary> {
        self.cells.iter().map(|cell| cell.summary.clone()).collect()
    }

    /// One line about what was run where.
    pub(crate) fn setup(&self) -> String {
        format!(
            "{}: {} of {} ms, {} of computing each; {}",
            self.version,
            count(self.goroutines, "goroutine"),
            ms(self.work_ns as f64),
            count(self.rounds as usize, "round"),
            count(self.cpus, "CPU"),
        )
    }
}

/// Writes NOTES.md, index.html, the drawings and results.json into `folder`, which is made if it is missing.
///
/// # Errors
/// What the file system says.
pub fn write(document: &Document, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("results.json"), serde_json::to_string(document)?)?;
    for figure in figure::all(document) {
        fs::write(folder.join(&figure.file), figure.svg())?;
    }
    fs::write(folder.join("index.html"), page::of(document))?;
    fs::write(folder.join("NOTES.md"), notes::markdown(document))
}
