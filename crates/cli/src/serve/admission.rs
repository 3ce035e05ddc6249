//! Who may compute, and who may wait for it.

use gosched::sync::Semaphore;

/// A bound on how much is computed at once, and on how many wait for their turn.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: Option<Limits>,
}

#[derive(Debug)]
struct Limits {
    /// For each who computes or waits; `None`: any number waits.
    places: Option<Semaphore>,
    cpus: Semaphore,
}

/// There is no place to wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Admission {
    /// At most `cpus` compute, and `queue` more wait.
    pub(crate) fn new(cpus: Option<usize>, queue: Option<usize>) -> Admission {
        let limits = cpus.map(|cpus| Limits {
            places: queue.map(|queue| Semaphore::new(cpus + queue)),
            cpus: Semaphore::new(cpus),
        });
        Admission { limits }
    }

    /// Runs `f` when it is its turn.
    ///
    /// # Errors
    /// Too many wait already.
    pub(crate) fn run<T>(&self, f: impl FnOnce() -> T) -> Result<T, Full> {
        let Some(limits) = &self.limits else { return Ok(f()) };
        let _place = match &limits.places {
            Some(places) => Some(places.try_acquire().ok_or(Full)?),
            None => None,
        };
        let _turn = limits.cpus.acquire();
        Ok(f())
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, Full};
    use gosched::channel::bounded;
    use std::sync::Arc;

    #[gosched::test(timeout = "60s")]
    fn a_full_queue_is_told_at_once() {
        let admission = Arc::new(Admission::new(Some(1), Some(1)));
        let (go_on, gone_on) = bounded::<()>(0);
        let (began, begun) = bounded(0);
        let admit = || {
            let (admission, began, gone_on) = (admission.clone(), began.clone(), gone_on.clone());
            gosched::go(move || {
                admission.run(|| {
                    began.send(()).unwrap();
                    gone_on.recv().unwrap();
                })
            })
        };
        let runs = admit();
        begun.recv().unwrap();
        // Of two more one waits, and the other is told.
        let (one, other) = (admit(), admit());
        while !(one.is_finished() || other.is_finished()) {
            gosched::thread::yield_now();
        }
        let (told, waits) = if one.is_finished() { (one, other) } else { (other, one) };
        assert_eq!(told.join().unwrap(), Err(Full));
        assert_eq!(admission.run(|| ()), Err(Full));
        go_on.send(()).unwrap();
        begun.recv().unwrap();
        go_on.send(()).unwrap();
        assert_eq!((runs.join().unwrap(), waits.join().unwrap()), (Ok(()), Ok(())));
        assert_eq!(admission.run(|| ()), Ok(()));
    }

    #[gosched::test(timeout = "60s")]
    fn without_limits_all_run() {
        let admission = Admission::new(None, None);
        assert_eq!(admission.run(|| admission.run(|| 1)), Ok(Ok(1)));
    }
}
