//! Panics in goroutines: isolated, printed with the goroutine's number, counted.

use crate::current::current;
use crate::start::ensure_started;
use gosched_base::os;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static COUNT: AtomicU64 = AtomicU64::new(0);

/// A goroutine's function has panicked. With `GOSCHED=panic=abort` the process ends, as Go's would.
pub(crate) fn count() {
    // ORDERING: Relaxed; a statistic.
    COUNT.fetch_add(1, Relaxed);
    if ensure_started().panic_aborts {
        os::exit_group(2);
    }
}

/// How many goroutines have ended by a panic.
#[must_use]
pub fn panics() -> u64 {
    // ORDERING: Relaxed; a statistic.
    COUNT.load(Relaxed)
}

/// Puts a line with the goroutine's number before what the panic hook prints. Once.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            print_identity();
            previous(info);
        }));
    });
}

fn print_identity() {
    use std::io::Write;
    let Some(g) = current() else { return };
    let name = g.task.get().and_then(|task| {
        // SAFETY: the running goroutine's own task, which it has not completed.
        unsafe { task.as_ref() }.name.clone()
    });
    let mut err = std::io::stderr().lock();
    let _ = match name {
        Some(name) => writeln!(err, "goroutine {} {name:?} [running]:", g.id()),
        None => writeln!(err, "goroutine {} [running]:", g.id()),
    };
}
