//! `leak`: goroutines that wait for somebody who has gone.

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::row::Verdict::{Right, Wrong};
use crate::row::{Finding, Rows};
use gosched::channel::{Receiver, bounded};
use gosched::{context, go, runtime, thread};
use std::time::Duration;

pub(super) const DEMO: Demo = Demo {
    name: "leak",
    about: "goroutines that wait for ever for somebody who has gone",
    question: "A request asks goroutines for an answer and takes the first. Look at how many \
        goroutines are left afterwards, and at what the dump says they wait for.",
    size: Size { what: "goroutines asked", usual: 10, quick: 10, most: 100_000 },
    wants_folder: false,
    columns: &["asked", "left"],
    cases: &[
        Case::new(Wrong, HELD, |setup| {
            let (before, held) = (runtime::num_goroutine(), ask(setup, 0)?);
            let left = left(setup, before);
            drop(held);
            left
        }),
        Case::new(Right, DROPPED, |setup| {
            let before = runtime::num_goroutine();
            drop(ask(setup, 0)?);
            left(setup, before)
        }),
        Case::new(Right, ROOM, |setup| {
            let (before, held) = (runtime::num_goroutine(), ask(setup, setup.size as usize)?);
            let left = left(setup, before);
            drop(held);
            left
        }),
        Case::new(Right, CONTEXT, with_context),
    ],
    explain,
};

const HELD: &str = "no room, and the other end is held";
const DROPPED: &str = "the other end is dropped";
const ROOM: &str = "room for every answer";
const CONTEXT: &str = "a context that ends";

/// Asks all and takes the first answer; the receiver is the caller's.
fn ask(setup: &Setup, room: usize) -> Result<Receiver<u64>, String> {
    let (answers, first) = bounded(room);
    for n in 0..setup.size {
        let answers = answers.clone();
        // What the channel says is not looked at, as it often is not.
        go(move || _ = answers.send(n));
    }
    first.recv().map_err(|_| "nobody answers")?;
    Ok(first)
}

fn with_context(setup: &Setup) -> Result<Figures, String> {
    let before = runtime::num_goroutine();
    let (ctx, cancel) = context::with_cancel(&context::background());
    let (answers, first) = bounded(0);
    for n in 0..setup.size {
        let (answers, ctx) = (answers.clone(), ctx.clone());
        go(move || _ = answers.send_ctx(&ctx, n));
    }
    first.recv().map_err(|_| "nobody answers")?;
    cancel.cancel();
    let left = left(setup, before);
    drop(first);
    left
}

/// Those that are new since there were `before`, once all that are left wait for good.
fn left(setup: &Setup, before: usize) -> Result<Figures, String> {
    loop {
        let left = runtime::num_goroutine() - before;
        let mut text = String::new();
        runtime::dump(&mut text).map_err(|error| error.to_string())?;
        let mut waiting = text.lines().filter(|line| line.contains("[chan send"));
        let first = waiting.next();
        if left == usize::from(first.is_some()) + waiting.count() {
            let figures = Figures::new().set("asked", setup.size).set("left", left);
            return Ok(first.into_iter().fold(figures, |figures, line| figures.note(line)));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let left = |case| rows.get(case, "left");
    let line = rows.notes(HELD).first().map_or("", String::as_str);
    vec![
        Finding::of(
            left(HELD) > 0,
            format!(
                "{} of {} goroutines were left, each with its stack, for as long as the process \
                 runs. The dump names what they wait for, such as \"{line}\", and \
                 `runtime::dump_groups` counts those that wait at one place. Send SIGQUIT to a \
                 running process for the same.",
                left(HELD),
                rows.get(HELD, "asked"),
            ),
            "No goroutine was left.",
        ),
        Finding::of(
            [DROPPED, ROOM, CONTEXT].iter().all(|case| left(case) == 0) && left(HELD) > 0,
            "Three ways out, with none left: drop the end that nobody reads from (sending then \
             fails instead of waiting), make room for every answer, or give all of them a context \
             and end it.",
            "A cure left goroutines behind, or there was nothing to cure.",
        ),
    ]
}
