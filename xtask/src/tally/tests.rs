//! Tests on output as cargo 1.95 prints it.

use super::{Models, Tally};
use crate::report::Report;

fn tally(models: Models, output: &str) -> Report {
    let mut tally = Tally::new(models);
    for line in output.lines() {
        tally.line(line);
    }
    tally.finish()
}

const MIXED: &str = "\
     Running unittests src/lib.rs (target/debug/deps/gosched_runq-0f)

running 5 tests
test ring::full ... ok
test ring::slow ... ignored, takes an hour
test ring::wrong ... FAILED
test ring::numa ... ok
test ring::gone ... ignored
test ring::full has been running for over 60 seconds

successes:

---- ring::numa stdout ----
SKIPPED: one node only
SKIPPED: one node only


successes:
    ring::full
    ring::numa

failures:

---- ring::wrong stdout ----
SKIPPED: not counted, it failed

failures:
    ring::wrong

test result: FAILED. 2 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests gosched_runq

running 2 tests
test crates/runq/src/lib.rs - (line 3) ... ok
test crates/runq/src/lib.rs - ring (line 9) - compile fail ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
";

#[test]
fn counts_and_reasons() {
    let report = tally(Models::MayBeEmpty, MIXED);
    assert_eq!(report.passed, 3);
    assert_eq!(report.failures, ["unit tests of gosched_runq: ring::wrong"]);
    assert_eq!(
        report.skips,
        [
            "unit tests of gosched_runq: ring::numa: one node only",
            "unit tests of gosched_runq: ring::slow: takes an hour",
            "unit tests of gosched_runq: ring::gone: ignored",
        ]
    );
}

#[test]
fn what_failed_tests_print_is_kept_up_to_the_backtrace() {
    let output = "running 2 tests\ntest a ... FAILED\ntest b ... FAILED\n\nfailures:\n\n\
                  ---- a stdout ----\nleft: 1\nstack backtrace:\n   0: main\n\n\
                  ---- b stdout ----\nlate\n\n\nfailures:\n    a\n    b\n\n\
                  test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured";
    assert_eq!(tally(Models::MayBeEmpty, output).stories, ["a:\nleft: 1", "b:\nlate"]);
}

#[test]
fn a_skip_on_the_line_of_the_test() {
    let output = "running 1 test\ntest far ... SKIPPED: no second node\nok\n\
                  test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
    let report = tally(Models::MayBeEmpty, output);
    assert_eq!((report.passed, report.skips.len(), report.failures.len()), (0, 1, 0));
}

#[test]
fn a_binary_that_dies_is_a_failure() {
    let output = "     Running tests/it/main.rs (target/debug/deps/it-0f)\nrunning 2 tests\n\
                  test two has been running for over 60 seconds\ntest one ... ok\n\
                  error: test failed, to rerun pass `-p gosched --test it`\n   Doc-tests gosched\nrunning 0 tests\n\
                  test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
    let report = tally(Models::MayBeEmpty, output);
    assert_eq!(report.failures, ["-p gosched --test it: ended without a result; slow: two"]);
}

#[test]
fn an_empty_test_binary_is_a_failure_unless_it_is_a_model() {
    let output = |name: &str| {
        format!(
            "     Running tests/{name}.rs (target/debug/deps/{name}-0f)\nrunning 0 tests\n\
             test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"
        )
    };
    assert_eq!(tally(Models::MayBeEmpty, &output("it")).failures.len(), 1);
    assert_eq!(tally(Models::MayBeEmpty, &output("loom_ring")).failures.len(), 0);
    assert_eq!(tally(Models::MustRun, &output("loom_ring")).failures.len(), 1);
}
