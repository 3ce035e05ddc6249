//! What the models share: the bounds of the search.

use loom::model::Builder;

/// Explores `run` with at most `preemptions` forced switches, or what LOOM_MAX_PREEMPTIONS says.
///
/// All known mutations are caught with two; three take seconds where at most three threads take
/// part.
pub(crate) fn explore(preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(run);
}
