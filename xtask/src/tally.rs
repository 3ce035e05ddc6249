//! Reads counts out of what `cargo test` prints.
//!
//! A test counts as skipped when libtest reports it as ignored, or when it passes and prints a
//! line that begins with `SKIPPED: ` and the reason. Such lines are seen because tests run with
//! `--show-output`; the rest of what passing tests print is not shown.
//!
//! Failures that libtest does not count are added: a binary that ends without its `test result:`
//! line (it aborted, or was killed), and an integration test binary with no tests in it, which
//! usually means that a `cfg` has removed them. Files `tests/loom_*.rs` are expected to be empty
//! outside the loom step.

use std::collections::BTreeSet;
use std::mem;

use crate::report::Report;
use crate::run::Shown;

/// How many lines of what a failed test prints are shown again at the end.
const STORY_LINES: usize = 120;

/// Whether integration tests called `loom_*` may be empty.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Models {
    /// This is not the loom step.
    MayBeEmpty,
    /// This is the loom step.
    MustRun,
}

/// The counts of one run of `cargo test`.
pub(crate) struct Tally {
    report: Report,
    models: Models,
    binary: Binary,
    /// The failures of the binary that ended last, until cargo says how to run it again.
    fresh: Vec<String>,
}

/// What is known of the binary that is running.
#[derive(Default)]
struct Binary {
    label: String,
    section: Section,
    test: String,
    /// `running N tests` was seen and `test result:` was not.
    open: bool,
    failed: BTreeSet<String>,
    /// Tests that libtest says have been running for a minute.
    slow: BTreeSet<String>,
    ignored: Vec<String>,
    skipped: BTreeSet<String>,
    /// What the failed test under `test` has printed so far.
    story: Vec<String>,
    is_story_over: bool,
}

#[derive(Default, PartialEq)]
enum Section {
    #[default]
    Running,
    Successes,
    Failures,
}

impl Tally {
    pub(crate) fn new(models: Models) -> Tally {
        Tally { report: Report::default(), models, binary: Binary::default(), fresh: Vec::new() }
    }

    /// Takes one line of output; says whether it is worth showing.
    pub(crate) fn line(&mut self, line: &str) -> Shown {
        let words = line.trim_start();
        if let Some(rest) = words.strip_prefix("Running ").filter(|rest| rest.ends_with(')')) {
            self.begin(&label(rest));
        } else if let Some(name) = words.strip_prefix("Doc-tests ") {
            self.begin(&format!("doc tests of {name}"));
        } else if self.binary.section == Section::Running && is_start(line) {
            self.close_unfinished();
            self.binary.open = true;
        } else if let Some(rest) = line.strip_prefix("error: test failed, to rerun pass ") {
            self.close_unfinished();
            self.name_fresh(rest.trim_matches('`'));
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.end(result);
        } else if let Some(rest) = line.strip_prefix("test ") {
            self.test_line(rest);
        } else if let Some(reason) = line.strip_prefix("SKIPPED:") {
            self.skip(reason);
        } else if let Some(name) = line.strip_prefix("---- ").and_then(header) {
            self.end_story();
            self.binary.test = name.to_owned();
        } else if line == "successes:" {
            self.binary.section = Section::Successes;
        } else if line == "failures:" {
            // Twice: before what they printed, and before their names.
            self.end_story();
            self.binary.section = Section::Failures;
        } else if self.binary.section == Section::Failures {
            self.tell(line);
        }
        let hidden = self.binary.section == Section::Successes || line.is_empty();
        if hidden { Shown::No } else { Shown::Yes }
    }

    /// The counts, once the output has ended.
    pub(crate) fn finish(mut self) -> Report {
        self.close_unfinished();
        let label = self.binary.label.clone();
        self.name_fresh(&label);
        self.report
    }

    /// Enters the failures of the binary that ended last under `name`.
    fn name_fresh(&mut self, name: &str) {
        let failures = self.fresh.drain(..).map(|failure| format!("{name}: {failure}"));
        self.report.failures.extend(failures);
    }

    /// A line of what a failed test printed.
    fn tell(&mut self, line: &str) {
        let Binary { story, is_story_over, .. } = &mut self.binary;
        *is_story_over |= line == "stack backtrace:" || story.len() == STORY_LINES;
        if !*is_story_over && !line.is_empty() {
            story.push(line.to_owned());
        }
    }

    fn end_story(&mut self) {
        self.binary.is_story_over = false;
        let story = mem::take(&mut self.binary.story);
        if self.binary.section == Section::Failures && !story.is_empty() {
            self.report.stories.push(format!("{}:\n{}", self.binary.test, story.join("\n")));
        }
    }

    fn begin(&mut self, label: &str) {
        self.close_unfinished();
        let last = mem::replace(&mut self.binary.label, label.to_owned());
        self.name_fresh(&last);
    }

    fn test_line(&mut self, rest: &str) {
        if let Some((name, _)) = rest.split_once(" has been running for over") {
            self.binary.slow.insert(name.to_owned());
        }
        let Some((name, outcome)) = rest.split_once(" ... ") else { return };
        self.binary.slow.remove(name);
        if outcome == "FAILED" {
            self.binary.failed.insert(name.to_owned());
        } else if let Some(reason) = outcome.strip_prefix("ignored") {
            let reason = reason.trim_start_matches([',', ' ']);
            let reason = if reason.is_empty() { "ignored" } else { reason };
            self.binary.ignored.push(format!("{name}: {reason}"));
        } else if let Some(reason) = outcome.strip_prefix("SKIPPED:") {
            self.binary.test = name.to_owned();
            self.skip(reason);
        }
    }

    fn skip(&mut self, reason: &str) {
        if self.binary.section != Section::Failures {
            self.binary.skipped.insert(format!("{}: {}", self.binary.test, reason.trim()));
        }
    }

    /// Adds the numbers of `ok. 3 passed; 0 failed; 1 ignored; ...`.
    fn end(&mut self, result: &str) {
        let binary = self.next_binary();
        let passed = number_before(result, "passed");
        let failed = number_before(result, "failed");
        let ignored = number_before(result, "ignored");
        let label = &binary.label;
        let mut skips: Vec<String> =
            binary.skipped.iter().take(passed).map(|skip| format!("{label}: {skip}")).collect();
        self.report.passed += passed - skips.len();
        skips.extend(binary.ignored.iter().map(|test| format!("{label}: {test}")));
        while skips.len() < ignored {
            skips.push(format!("{label}: ignored"));
        }
        self.report.skips.extend(skips);
        let mut names: Vec<String> = binary.failed.into_iter().collect();
        names.resize(failed, "a test without a name".to_owned());
        self.fresh.extend(names);
        let empty = passed + failed + ignored + number_before(result, "filtered") == 0;
        if empty && label.starts_with("tests/") && !self.may_be_empty(label) {
            self.fresh.push("holds no tests".to_owned());
        }
    }

    fn may_be_empty(&self, label: &str) -> bool {
        self.models == Models::MayBeEmpty && label.starts_with("tests/loom_")
    }

    fn close_unfinished(&mut self) {
        if self.binary.open {
            let binary = self.next_binary();
            let mut failure = "ended without a result".to_owned();
            for (title, tests) in [("failed", binary.failed), ("slow", binary.slow)] {
                for test in tests {
                    failure.push_str(&format!("; {title}: {test}"));
                }
            }
            self.fresh.push(failure);
        }
    }

    /// Forgets the tests of the binary; its label stays, since doc tests come in several runs.
    fn next_binary(&mut self) -> Binary {
        let label = self.binary.label.clone();
        mem::replace(&mut self.binary, Binary { label, ..Binary::default() })
    }
}

/// A name for the binary of `unittests src/lib.rs (target/debug/deps/gosched_runq-0f...)`.
///
/// The path of a source file is the same in many crates, the file with unit tests is not.
fn label(running: &str) -> String {
    let (source, binary) = running.split_once(" (").unwrap_or((running, ""));
    let stem = binary.rsplit('/').next().and_then(|name| name.rsplit_once('-'));
    match (source.strip_prefix("unittests "), stem) {
        (Some(_), Some((name, _))) => format!("unit tests of {name}"),
        _ => source.to_owned(),
    }
}

fn is_start(line: &str) -> bool {
    line.strip_prefix("running ")
        .and_then(|rest| rest.split_once(' '))
        .is_some_and(|(count, word)| count.parse::<usize>().is_ok() && word.starts_with("test"))
}

fn header(rest: &str) -> Option<&str> {
    rest.strip_suffix(" stdout ----")
}

fn number_before(result: &str, word: &str) -> usize {
    let words: Vec<&str> = result.split([' ', ';', '.']).filter(|part| !part.is_empty()).collect();
    let pair = words.windows(2).find(|pair| pair[1] == word);
    pair.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
