//! How models are run, in this crate and those above it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Runs `model` in every order with at most so many preemptions, or fewer if loom was told so; its
/// results.
pub(crate) fn explore<T: Ord + Send + 'static>(
    preemptions: usize,
    model: impl Fn() -> T + Send + Sync + 'static,
) -> BTreeSet<T> {
    let results = Arc::new(Mutex::new(BTreeSet::new()));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(3).min(preemptions));
    let seen = results.clone();
    builder.check(move || {
        let result = model();
        seen.lock().unwrap().insert(result);
    });
    Arc::into_inner(results).unwrap().into_inner().unwrap()
}
