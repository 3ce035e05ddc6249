//! What comes out of a demo: rows of figures, and what they show.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a case stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The mistake.
    Wrong,
    /// A cure.
    Right,
    /// Neither, for comparison.
    Plain,
}

/// What a case came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub case: String,
    /// What it stands for.
    pub verdict: Verdict,
    /// By name; the end of a name is the unit: `_ns`, `_ps`, `_bytes`, or none for a count.
    pub figures: BTreeMap<String, u64>,
    /// What is no figure, such as lines of a report.
    pub notes: Vec<String>,
}

/// One thing to see in the figures, and why it is so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Whether the figures bear it out.
    pub shown: bool,
    /// A sentence or two.
    pub text: String,
}

impl Finding {
    /// `yes` if the figures bear it out, else `no`.
    pub(crate) fn of(shown: bool, yes: impl Into<String>, no: impl Into<String>) -> Finding {
        Finding { shown, text: if shown { yes.into() } else { no.into() } }
    }
}

/// All that a demo came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Story {
    /// The demo's name.
    pub demo: String,
    /// How much each case did.
    pub size: u64,
    /// One for each case, in order.
    pub rows: Vec<Row>,
    /// What the rows show.
    pub findings: Vec<Finding>,
}

/// The rows, for whoever explains them.
#[derive(Debug)]
pub(crate) struct Rows<'a>(pub(crate) &'a [Row]);

impl Rows<'_> {
    /// A figure; 0 if there is none.
    pub(crate) fn get(&self, case: &str, figure: &str) -> u64 {
        let row = self.0.iter().find(|row| row.case == case);
        row.and_then(|row| row.figures.get(figure)).copied().unwrap_or(0)
    }

    /// How many times as much the figure is in `case` as in `other`.
    pub(crate) fn times(&self, case: &str, other: &str, figure: &str) -> f64 {
        self.get(case, figure) as f64 / self.get(other, figure).max(1) as f64
    }

    /// What a case had to say.
    pub(crate) fn notes(&self, case: &str) -> &[String] {
        self.0.iter().find(|row| row.case == case).map_or(&[], |row| &row.notes)
    }
}
