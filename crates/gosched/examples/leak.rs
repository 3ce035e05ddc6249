//! A leak: goroutines that wait for somebody who has gone.
//!
//! A request asks ten goroutines for an answer and takes the first. Without room in the channel,
//! and with its other end still held somewhere, the nine others wait for ever. Look at the number of goroutines
//! afterwards, and at what the dump says they wait for: `chan send`, all from one line.
//!
//! Three ways out: room for every answer; an end that is dropped, so that sending fails; a context
//! that ends.
//!
//! `cargo run --release --example leak`

use gosched::channel::{Receiver, bounded};
use gosched::runtime;
use gosched::{context, go};
use std::fmt;
use std::time::Duration;

const ASKED: usize = 10;

/// How many goroutines were left, and what the dump says of them.
pub(crate) struct Shown {
    pub(crate) way: &'static str,
    pub(crate) left: usize,
    pub(crate) waiting: Vec<String>,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { way, left, waiting } = self;
        write!(f, "{way:<34} {left:>2} left")?;
        waiting.first().map_or(Ok(()), |line| write!(f, ", such as {line}"))
    }
}

/// Those that are new since there were `before`, once those that end have ended and the others wait.
fn look(way: &'static str, before: usize, expected: usize) -> Shown {
    loop {
        let left = runtime::num_goroutine() - before;
        let mut text = String::new();
        runtime::dump(&mut text).expect("a string takes everything");
        let waiting = text.lines().filter(|line| line.contains("[chan send"));
        let waiting: Vec<_> = waiting.map(String::from).collect();
        if left == expected && waiting.len() == expected {
            return Shown { way, left, waiting };
        }
        gosched::thread::sleep(Duration::from_millis(1));
    }
}

/// Asks all and takes the first answer; the receiver is the caller's.
fn ask(room: usize) -> Receiver<usize> {
    let (answers, first) = bounded(room);
    for n in 0..ASKED {
        let answers = answers.clone();
        // What the channel says is not looked at, as it often is not.
        go(move || _ = answers.send(n));
    }
    first.recv().expect("somebody answers");
    first
}

pub(crate) fn demo() -> [Shown; 4] {
    let before = runtime::num_goroutine();
    let held = ask(0);
    let wrong = look("nobody receives, the end is held", before, ASKED - 1);
    drop(held);
    let dropped = look("the end is dropped", before, 0);
    let held = ask(ASKED);
    let room = look("room for every answer", before, 0);
    drop(held);
    let (ctx, cancel) = context::with_cancel(&context::background());
    let (answers, first) = bounded(0);
    for n in 0..ASKED {
        let (answers, ctx) = (answers.clone(), ctx.clone());
        go(move || _ = answers.send_ctx(&ctx, n));
    }
    first.recv().expect("somebody answers");
    cancel.cancel();
    let cancelled = look("the context ends", before, 0);
    [wrong, dropped, room, cancelled]
}

#[gosched::main]
fn main() {
    demo().iter().for_each(|shown| println!("{shown}"));
}
