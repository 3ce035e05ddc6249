//! `order`: goroutines do not run in the order in which they were started.

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::row::Verdict::{Right, Wrong};
use crate::row::{Finding, Rows};
use crate::text::{count, time};
use gosched::channel::{self, bounded};
use gosched::go;
use gosched::sync::{Arc, Mutex};
use std::time::Instant;

pub(super) const DEMO: Demo = Demo {
    name: "order",
    about: "goroutines don't run in the order in which they were started",
    question: "Goroutines are started one after the other, and each puts its number into a list. \
        Look at how many come before one that was started earlier.",
    size: Size { what: "goroutines", usual: 1_000, quick: 100, most: 100_000 },
    wants_folder: false,
    columns: &["goroutines", "out_of_order", "took_ns"],
    cases: &[
        Case::new(Wrong, ASSUMED, assumed),
        Case::new(Right, CHAINED, chained),
        Case::new(Right, INDEXED, indexed),
    ],
    explain,
};

const ASSUMED: &str = "order assumed";
const CHAINED: &str = "each waits for the one before";
const INDEXED: &str = "results put where they belong";

/// How many are followed by a smaller one.
fn out_of_order(numbers: &[u64]) -> usize {
    numbers.windows(2).filter(|pair| pair[0] > pair[1]).count()
}

fn figures(numbers: &[u64], begun: Instant) -> Figures {
    let first: Vec<_> = numbers.iter().take(20).map(u64::to_string).collect();
    Figures::new()
        .set("goroutines", numbers.len())
        .set("out_of_order", out_of_order(numbers))
        .set("took_ns", begun.elapsed().as_nanos())
        .note(format!("{} ...", first.join(" ")))
}

fn assumed(setup: &Setup) -> Result<Figures, String> {
    let begun = Instant::now();
    let list = Arc::new(Mutex::new(Vec::new()));
    let all: Vec<_> = (0..setup.size)
        .map(|n| {
            let list = list.clone();
            go(move || list.lock().unwrap().push(n))
        })
        .collect();
    all.into_iter().try_for_each(|g| g.join()).map_err(|_| "a goroutine panicked")?;
    let list = list.lock().unwrap();
    Ok(figures(&list, begun))
}

fn chained(setup: &Setup) -> Result<Figures, String> {
    let begun = Instant::now();
    let list = Arc::new(Mutex::new(Vec::new()));
    let (start, mut before) = bounded::<()>(1);
    for n in 0..setup.size {
        let (done, next) = bounded(1);
        let (list, turn) = (list.clone(), std::mem::replace(&mut before, next));
        go(move || {
            // An error would mean that the one before is gone, which is as good.
            let _ = turn.recv();
            list.lock().unwrap().push(n);
            let _ = done.send(());
        });
    }
    start.send(()).map_err(|_| "the first goroutine is gone")?;
    before.recv().map_err(|_| "the last goroutine is gone")?;
    let list = list.lock().unwrap();
    Ok(figures(&list, begun))
}

fn indexed(setup: &Setup) -> Result<Figures, String> {
    let begun = Instant::now();
    let (results, arrived) = channel::unbounded();
    for n in 0..setup.size {
        let results = results.clone();
        go(move || _ = results.send((n, n)));
    }
    drop(results);
    let mut list = vec![u64::MAX; usize::try_from(setup.size).map_err(|_| "too many")?];
    for (n, result) in arrived {
        list[n as usize] = result;
    }
    Ok(figures(&list, begun))
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let out = |case| rows.get(case, "out_of_order");
    let first = rows.notes(ASSUMED).first().map_or("", String::as_str);
    let took = |case| time(rows.get(case, "took_ns"));
    vec![
        Finding::of(
            out(ASSUMED) > 0,
            format!(
                "{} times a goroutine came before one that was started earlier ({first}). The one \
                 started last takes the processor's next slot, idle processors take half of \
                 the queue from its head, and a full queue sends half of it away.",
                count(out(ASSUMED)),
            ),
            "They happened to come in order in this run, which promises nothing for the next.",
        ),
        Finding::of(
            out(CHAINED) == 0 && out(INDEXED) == 0 && out(ASSUMED) > 0,
            format!(
                "A chain of channels forces the order and lets one run at a time ({}); if only the \
                 results must be in order, carry the number along and let them run as they like ({}).",
                took(CHAINED),
                took(INDEXED),
            ),
            "The cures have nothing to cure here, or did not.",
        ),
    ]
}
