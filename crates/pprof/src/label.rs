//! Labels: what a goroutine works on, in profiles.

use gosched_sched::Labels;
use std::sync::Arc;

/// Runs `f` with these labels besides those that the calling goroutine has; goroutines that it spawns
/// meanwhile have them too. Go's `pprof.Do`.
///
/// CPU and goroutine profiles show them, and `go tool pprof -tags`. A plain thread has none: there `f` is
/// just called.
///
/// ```
/// use gosched_pprof::{labels, with_labels};
///
/// gosched_sched::run(|| {
///     with_labels(&[("request", "42"), ("user", "none")], || {
///         with_labels(&[("user", "7")], || {
///             assert_eq!(labels().to_string(), "{request: 42, user: 7}");
///         });
///     });
///     assert!(labels().is_empty());
/// });
/// ```
pub fn with_labels<R>(new: &[(&str, &str)], f: impl FnOnce() -> R) -> R {
    gosched_sched::with_labels(Arc::new(labels().and(new)), f)
}

/// The calling goroutine's labels.
#[must_use]
pub fn labels() -> Labels {
    gosched_sched::labels().map_or_else(Labels::default, |labels| (*labels).clone())
}
