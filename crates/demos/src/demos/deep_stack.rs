//! `deep-stack`: recursion that is deeper than a goroutine's stack.

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::machine;
use crate::row::Verdict::{Right, Wrong};
use crate::row::{Finding, Rows};
use crate::text::{bytes, count};
use gosched::{go, thread};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(super) const DEMO: Demo = Demo {
    name: "deep-stack",
    about: "recursion that is deeper than a goroutine's stack",
    question: "A function that needs 1 KiB calls itself again and again. Look at how each process \
        ended, and at the memory.",
    size: Size { what: "calls deep", usual: 32_768, quick: 4_096, most: 400_000 },
    wants_folder: false,
    columns: &["died", "depth", "resident_bytes"],
    cases: &[
        Case::new(Wrong, DEFAULT, |setup| {
            let depth = setup.size;
            let reached = go(move || dive(depth)).join().map_err(|_| "it panicked")?;
            Ok(figures(reached))
        })
        .may_die(),
        Case::new(Right, BUILDER, |setup| {
            let (depth, bytes) = (setup.size, stack_bytes(setup));
            let builder = thread::Builder::new().stack_size(bytes);
            let deep = builder.spawn(move || dive(depth)).map_err(|error| error.to_string())?;
            Ok(figures(deep.join().map_err(|_| "it panicked")?))
        }),
        Case::new(Right, HEAP, |setup| Ok(figures(on_the_heap(setup.size)))),
    ],
    explain,
};

const DEFAULT: &str = "the default stack";
const BUILDER: &str = "Builder::stack_size";
const HEAP: &str = "a stack of its own on the heap";
const FRAME: usize = 1_024;

/// A debug build's frames are larger than what is in them.
fn stack_bytes(setup: &Setup) -> usize {
    (setup.size as usize).saturating_mul(4 * FRAME) + (1 << 20)
}

/// The memory of the process at the deepest point.
static RESIDENT: AtomicU64 = AtomicU64::new(0);

fn look() {
    RESIDENT.store(machine::resident_bytes(), Relaxed);
}

fn figures(depth: u64) -> Figures {
    let resident = RESIDENT.load(Relaxed);
    Figures::new().set("died", 0_u64).set("depth", depth).set("resident_bytes", resident)
}

/// How deep it got.
#[inline(never)]
fn dive(left: u64) -> u64 {
    let frame = std::hint::black_box([left as u8; FRAME - 64]);
    let below = if left > 1 {
        dive(left - 1)
    } else {
        look();
        0
    };
    // What is used afterwards is kept until then.
    std::hint::black_box(&frame);
    below + 1
}

/// The same with what a call would keep in a vector.
fn on_the_heap(depth: u64) -> u64 {
    let mut frames = Vec::new();
    for left in (1..=depth).rev() {
        frames.push(std::hint::black_box([left as u8; FRAME - 64]));
    }
    look();
    std::hint::black_box(frames).len() as u64
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let died = rows.get(DEFAULT, "died") == 1;
    let report = rows.notes(DEFAULT).iter().find(|line| line.contains("overflow"));
    let depth = rows.get(BUILDER, "depth");
    vec![
        Finding::of(
            died && report.is_some(),
            format!(
                "The process ended with a report (\"{}\"). Below each stack lie pages that nobody \
                 may touch, so that no memory of others is written over.",
                report.map_or("", String::as_str),
            ),
            "The default stack was deep enough, or the process died without a report.",
        ),
        Finding::of(
            died && depth > 0 && rows.get(HEAP, "depth") == depth,
            format!(
                "With a stack of the right size {} calls fit, in {} of memory: a stack reserves \
                 addresses, and takes pages when they are touched. `GOSCHED=stack=1M` sets the \
                 default of a whole process. A stack of one's own on the heap needs {} and no \
                 luck.",
                count(depth),
                bytes(rows.get(BUILDER, "resident_bytes")),
                bytes(rows.get(HEAP, "resident_bytes")),
            ),
            "The cures did not get as deep as they should, or there was nothing to cure.",
        ),
    ]
}
