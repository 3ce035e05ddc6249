//! `pingpong`: two tasks and two channels.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::{join, spawn};
use gosched::channel::bounded;
use std::time::Instant;

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(2_000_000)?;
    let cap = args.get("cap", 0)?;
    let (ping, pinged) = bounded(cap);
    let (pong, ponged) = bounded(cap);
    let start = Instant::now();
    let echo = spawn(move || {
        while let Ok(ball) = pinged.recv() {
            pong.send(ball + 1).expect("the player waits for it");
        }
    });
    let player = spawn(move || {
        let mut ball = 0;
        for _ in 0..n {
            ping.send(ball).expect("the echo waits for it");
            ball = ponged.recv().expect("the echo answers");
        }
        ball
    });
    assert_eq!(join(player), n);
    let took = start.elapsed();
    join(echo);
    Ok(Report::new(args, n).time(took, n).set("channel", format!("gosched cap {cap}")))
}
