//! The attributes on real functions, with a runtime of a few lines in gosched's place.

use std::num::ParseIntError;
use std::panic::{catch_unwind, panic_any};
use std::process::{ExitCode, Termination};
use std::sync::Mutex;
use std::time::Duration;

/// What the expansions call.
mod runtime {
    pub(crate) mod __private {
        use crate::{CALLS, Duration, ExitCode, Termination, panic_any};

        /// Panics with the exit code, where the real one ends the process.
        pub(crate) fn main<T: Termination + 'static>(f: fn() -> T) -> ! {
            panic_any::<ExitCode>(f().report())
        }

        pub(crate) fn test<T: Termination>(
            name: &'static str,
            timeout: Option<Duration>,
            f: fn() -> T,
        ) -> T {
            CALLS.lock().unwrap().push((name, timeout));
            f()
        }
    }
}

/// The tests that were run through the runtime.
static CALLS: Mutex<Vec<(&str, Option<Duration>)>> = Mutex::new(Vec::new());

#[gosched_macros::main(crate = runtime)]
fn plain() {}

#[gosched_macros::main(crate = crate::runtime)]
fn with_a_result() -> Result<(), ParseIntError> {
    "x".parse::<u8>()?;
    Ok(())
}

#[gosched_macros::main(crate = runtime)]
fn with_an_opaque_result() -> impl Termination {
    ExitCode::from(3)
}

#[test]
fn main_reports_what_the_function_returned() {
    let cases: [(fn() -> !, ExitCode); 3] = [
        (|| plain(), ExitCode::SUCCESS),
        (|| with_a_result(), ExitCode::FAILURE),
        (|| with_an_opaque_result(), ExitCode::from(3)),
    ];
    for (main, want) in cases {
        let Err(ended) = catch_unwind(|| main());
        assert_eq!(ended.downcast_ref::<ExitCode>(), Some(&want));
    }
}

#[gosched_macros::test(crate = runtime, timeout = "5s")]
fn runs_through_the_runtime() {
    let calls = CALLS.lock().unwrap();
    let name = concat!(module_path!(), "::runs_through_the_runtime");
    assert!(calls.contains(&(name, Some(Duration::from_secs(5)))), "{calls:?}");
}

#[gosched_macros::test(crate = runtime)]
#[should_panic(expected = "as it should")]
fn should_panic_is_kept() {
    panic!("as it should");
}

#[gosched_macros::test(crate = runtime)]
#[ignore = "it is here to be ignored"]
fn ignore_is_kept() {
    panic!("it ran");
}

#[gosched_macros::test(crate = runtime)]
#[cfg(any())]
fn cfg_is_kept() {
    this_does_not_exist();
}

#[gosched_macros::test(crate = runtime)]
fn returns_a_result() -> Result<(), ParseIntError> {
    assert_eq!("42".parse::<u8>()?, 42);
    Ok(())
}

#[gosched_macros::test(crate = runtime)]
fn calls_itself() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static DEPTH: AtomicUsize = AtomicUsize::new(0);
    if DEPTH.fetch_add(1, Relaxed) < 2 {
        calls_itself();
        let calls = CALLS.lock().unwrap();
        let own = calls.iter().filter(|(name, _)| name.ends_with("::calls_itself"));
        assert_eq!(own.count(), 1);
    }
}
