//! `parallelism`: the same sum by more and more goroutines.

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::row::Verdict::{Plain, Right, Wrong};
use crate::row::{Finding, Rows};
use crate::text::{count, time};
use gosched::{runtime, thread};
use std::time::Instant;

pub(super) const DEMO: Demo = Demo {
    name: "parallelism",
    about: "more goroutines than the work is worth",
    question: "The same numbers are added up by one goroutine, by as many as there are processors, \
        by a thousand, and by one for each number. Look at the times.",
    size: Size { what: "numbers", usual: 1_000_000, quick: 20_000, most: 10_000_000 },
    wants_folder: false,
    columns: &["goroutines", "took_ns", "sum"],
    cases: &[
        Case::new(Plain, ONE, |setup| sum(setup, setup.size)),
        Case::new(Right, PROCS, |setup| {
            sum(setup, setup.size.div_ceil(runtime::gomaxprocs(0) as u64))
        }),
        Case::new(Plain, MANY, |setup| sum(setup, (setup.size / 1_000).max(1))),
        Case::new(Wrong, EACH, |setup| sum(setup, 1)),
    ],
    explain,
};

const ONE: &str = "one goroutine";
const PROCS: &str = "one for each processor";
const MANY: &str = "a thousand";
const EACH: &str = "one for each number";

/// By goroutines that take `chunk` numbers each.
fn sum(setup: &Setup, chunk: u64) -> Result<Figures, String> {
    let numbers: Vec<u64> = (0..setup.size).collect();
    let chunk = usize::try_from(chunk.max(1)).map_err(|_| "too many")?;
    let start = Instant::now();
    let (sum, goroutines) = thread::scope(|scope| {
        let part = |part: &[u64]| part.iter().map(|n| n ^ 1).sum::<u64>();
        let parts: Vec<_> =
            numbers.chunks(chunk).map(|numbers| scope.spawn(move || part(numbers))).collect();
        let goroutines = parts.len();
        let sums: Result<Vec<u64>, _> = parts.into_iter().map(|part| part.join()).collect();
        (sums.map(|sums| sums.iter().sum::<u64>()), goroutines)
    });
    Ok(Figures::new()
        .set("goroutines", goroutines)
        .set("took_ns", start.elapsed().as_nanos())
        .set("sum", sum.map_err(|_| "a goroutine panicked")?))
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let ns = |case| rows.get(case, "took_ns");
    let goroutines = rows.get(EACH, "goroutines");
    let each = ns(EACH).saturating_sub(ns(ONE)) as f64 / goroutines.max(1) as f64;
    let add = ns(ONE) as f64 / goroutines.max(1) as f64;
    vec![
        Finding::of(
            ns(EACH) > 2 * ns(ONE),
            format!(
                "{} goroutines took {:.0} times as long as one: {} against {}. A goroutine costs \
                 little, not nothing: {each:.0} ns here, as much as {:.0} additions.",
                count(goroutines),
                rows.times(EACH, ONE, "took_ns"),
                time(ns(EACH)),
                time(ns(ONE)),
                each / add.max(0.01),
            ),
            "One goroutine for each number was not slower than a single one, which is surprising.",
        ),
        Finding::of(
            ns(PROCS) < ns(ONE),
            format!(
                "As many as there are processors took {}, {:.1} times as fast as one.",
                time(ns(PROCS)),
                rows.times(ONE, PROCS, "took_ns"),
            ),
            format!(
                "As many as there are processors ({}) took {} and one {}: so little work is not \
                 worth dividing, or the CPUs were busy with something else.",
                count(rows.get(PROCS, "goroutines")),
                time(ns(PROCS)),
                time(ns(ONE)),
            ),
        ),
    ]
}
