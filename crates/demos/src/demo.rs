//! What a demo is.

use crate::row::{Finding, Row, Rows, Verdict};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a case's lines go while it runs.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// A demo: some cases, and what they show.
#[derive(Debug)]
#[non_exhaustive]
pub struct Demo {
    /// What it is called on the command line.
    pub name: &'static str,
    /// One line for the list.
    pub about: &'static str,
    /// What the cases do, and what to look at.
    pub question: &'static str,
    /// How much each case does.
    pub size: Size,
    /// Whether it works on a folder that somebody must name.
    pub wants_folder: bool,
    /// The figures that the table shows, in this order. The end of a name is its unit.
    pub columns: &'static [&'static str],
    pub(crate) cases: &'static [Case],
    pub(crate) explain: fn(&Rows) -> Vec<Finding>,
}

/// How much a demo does.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Size {
    /// Of what.
    pub what: &'static str,
    /// Unless something else is asked for.
    pub usual: u64,
    /// With `--quick`.
    pub quick: u64,
    /// At most.
    pub most: u64,
}

/// What a case is given.
#[derive(Clone)]
pub struct Setup {
    /// How much there is to do, in the unit of the demo's [`Size`].
    pub size: u64,
    /// Whether there is little time.
    pub quick: bool,
    /// The folder to work on, for a demo that wants one.
    pub folder: Option<PathBuf>,
    /// For what is to be seen while the case runs.
    pub say: Say,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup { size, quick, folder, say: _ } = self;
        let mut shown = f.debug_struct("Setup");
        shown.field("size", size).field("quick", quick).field("folder", folder);
        shown.finish_non_exhaustive()
    }
}

/// One way to do it.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    /// What `GOSCHED` has to be when the process starts; `{container}` stands for the folder of a
    /// made-up container.
    pub(crate) settings: &'static str,
    pub(crate) end: End,
    /// Runs in a goroutine of a process of its own.
    pub(crate) run: fn(&Setup) -> Result<Figures, String>,
}

/// How the process of a case ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With a row.
    Row,
    /// It may be ended by the system, which is what the case shows.
    MayDie,
}

impl Case {
    pub(crate) const fn new(
        verdict: Verdict,
        name: &'static str,
        run: fn(&Setup) -> Result<Figures, String>,
    ) -> Case {
        Case { name, verdict, settings: "", end: End::Row, run }
    }

    pub(crate) const fn with(mut self, settings: &'static str) -> Case {
        self.settings = settings;
        self
    }

    pub(crate) const fn may_die(mut self) -> Case {
        self.end = End::MayDie;
        self
    }
}

/// What a case came to.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    figures: Vec<(&'static str, u64)>,
    notes: Vec<String>,
}

impl Figures {
    pub(crate) fn new() -> Figures {
        Figures::default()
    }

    pub(crate) fn set(mut self, name: &'static str, value: impl TryInto<u64>) -> Figures {
        self.figures.push((name, value.try_into().unwrap_or(u64::MAX)));
        self
    }

    pub(crate) fn note(mut self, line: impl Into<String>) -> Figures {
        self.notes.push(line.into());
        self
    }

    pub(crate) fn row(self, case: &Case) -> Row {
        let figures = self.figures.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
        Row { case: case.name.to_owned(), verdict: case.verdict, figures, notes: self.notes }
    }
}
