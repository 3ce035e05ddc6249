//! What a step is, and the list of all.

use crate::carry::Carriers;
use crate::mode::Mode;
use crate::steps;

/// Something that must work on a fiber.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    /// Modes in which the step has no meaning, and why.
    pub(crate) except: &'static [(Mode, &'static str)],
}

/// Where a step's function runs.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// On a coroutine; once alone, then on two by turns.
    Inside(fn()),
    /// On a plain thread, which makes the coroutines.
    Outside(fn(&Carriers)),
}

impl Step {
    pub(crate) const fn inside(name: &'static str, f: fn()) -> Step {
        Step { name, run: Run::Inside(f), except: &[] }
    }

    pub(crate) const fn outside(name: &'static str, f: fn(&Carriers)) -> Step {
        Step { name, run: Run::Outside(f), except: &[] }
    }

    pub(crate) const fn except(self, except: &'static [(Mode, &'static str)]) -> Step {
        Step { except, ..self }
    }

    /// Why the step is left out in `mode`, if it is.
    pub(crate) fn reason_to_skip(&self, mode: Mode) -> Option<&'static str> {
        self.except.iter().find(|(m, _)| *m == mode).map(|(_, reason)| *reason)
    }
}

/// Every step, in order.
pub(crate) fn all() -> impl Iterator<Item = &'static Step> {
    steps::ALL.iter().copied().flatten()
}
