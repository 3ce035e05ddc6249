//! What a step found: counts, reasons of skips, and failures by name.

/// The result of a step, or of a part of one.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// Tests and checks that passed.
    pub(crate) passed: usize,
    /// One line for each failure.
    pub(crate) failures: Vec<String>,
    /// One line for each test or check that did not run, with the reason.
    pub(crate) skips: Vec<String>,
    /// What failed tests printed, up to their backtraces: the output of a long run is often seen by
    /// its end only.
    pub(crate) stories: Vec<String>,
}

impl Report {
    pub(crate) fn pass() -> Report {
        Report { passed: 1, ..Report::default() }
    }

    pub(crate) fn fail(text: impl Into<String>) -> Report {
        Report { failures: vec![text.into()], ..Report::default() }
    }

    pub(crate) fn skip(reason: impl Into<String>) -> Report {
        Report { skips: vec![reason.into()], ..Report::default() }
    }

    pub(crate) fn absorb(&mut self, other: Report) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.skips.extend(other.skips);
        self.stories.extend(other.stories);
    }

    /// Tests and checks that ran.
    pub(crate) fn ran(&self) -> usize {
        self.passed + self.failures.len()
    }

    /// The counts in the words of the last line of `cargo xtask ci`.
    pub(crate) fn counts(&self) -> String {
        let Report { passed, failures, skips, .. } = self;
        format!("{passed} passed, {} failed, {} skipped", failures.len(), skips.len())
    }
}
