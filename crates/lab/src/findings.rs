//! What the numbers say: one function for each question, from summaries to sentences.
//!
//! Each expects something, as the theory has it, and looks whether the numbers show it; if not,
//! it says so. The thresholds are wide: they tell an effect from its absence, not its size.

use crate::summary::Summary;
use crate::text::{count, ms};
use crate::traced::Traced;
use serde::Serialize;

mod queueing;

mod stopping;

mod yielding;

mod sleeping;

mod blocking;

mod lateness;

mod processors;

mod lesson;

mod rivals;

mod tracing;

/// A question and what the numbers answer.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What is asked.
    pub question: String,
    /// Whether the numbers show what they should.
    pub as_expected: bool,
    /// Whether it describes one trace, and not what the cells measured.
    #[serde(skip)]
    pub(crate) is_about_a_trace: bool,
    /// The answer, sentence by sentence.
    pub answer: Vec<String>,
}

impl Finding {
    pub(crate) fn expected<const N: usize>(question: &str, answer: [String; N]) -> Finding {
        Finding {
            question: question.to_owned(),
            as_expected: true,
            is_about_a_trace: false,
            answer: answer.into(),
        }
    }

    pub(crate) fn unexpected<const N: usize>(question: &str, answer: [String; N]) -> Finding {
        Finding {
            question: question.to_owned(),
            as_expected: false,
            is_about_a_trace: false,
            answer: answer.into(),
        }
    }
}

/// The cells that have numbers, and the machine they ran on.
struct Cells<'run> {
    all: &'run [Summary],
    cpus: usize,
}

impl<'run> Cells<'run> {
    /// Those of one variant, in the order of their processors.
    fn of(&self, variant: &str) -> Vec<&'run Summary> {
        let mut cells: Vec<_> = self.all.iter().filter(|cell| cell.variant == variant).collect();
        cells.sort_by_key(|cell| cell.procs);
        cells
    }

    fn on(&self, variant: &str, procs: usize) -> Option<&'run Summary> {
        self.of(variant).into_iter().find(|cell| cell.procs == procs)
    }

    /// Two variants on the fewest processors on which both have numbers.
    fn pair(&self, one: &str, other: &str) -> Option<(&'run Summary, &'run Summary)> {
        self.of(one).into_iter().find_map(|cell| Some((cell, self.on(other, cell.procs)?)))
    }
}

/// Every question that the numbers can answer.
pub(crate) fn all(summaries: &[Summary], traces: &[Traced], cpus: usize) -> Vec<Finding> {
    let cells = Cells { all: summaries, cpus };
    let mut findings: Vec<Finding> = lesson::finding(&cells).into_iter().collect();
    findings.extend(queueing::findings(&cells));
    findings.extend(stopping::findings(&cells));
    findings.extend(yielding::finding(&cells));
    findings.extend(sleeping::finding(&cells));
    findings.extend(blocking::findings(&cells));
    findings.extend(lateness::findings(&cells));
    findings.extend(processors::finding(&cells));
    findings.extend(rivals::threads(&cells));
    findings.extend(rivals::pool(&cells));
    findings.extend(tracing::cost(&cells, traces));
    findings.extend(traces.iter().map(|traced| tracing::finding(&cells, traced)));
    findings
}

/// What the machine gave to a cell: next to other programs it is less than the cell lasted.
fn cpu_time(cell: &Summary) -> String {
    format!(
        "the process used {} ms of CPU time in {} ms on {}",
        ms(cell.cpu_ns),
        ms(cell.elapsed_ns),
        count(cell.procs, "processor"),
    )
}

#[cfg(test)]
mod tests;
