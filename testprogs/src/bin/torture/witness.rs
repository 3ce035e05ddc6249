//! Whether the run saw what it is for.
//!
//! The floors of preemptions and migrations hold for each second in which all CPUs were ours: the
//! actors keep them busy, whether they are stopped or not. Where others computed, or a quota or the
//! host kept CPUs from this process, the floors shrink with the share that it had, by its own count
//! of ticks. They shrink with its square: to stop a goroutine takes two threads that have a CPU, its
//! own and the monitor's. On a machine that does nothing else the floors are nearly what they say.
//!
//! Of the other decisions each is to be seen once. A run goes on until they were, for some time.
//!
//! With shared thread-locals nothing is stopped in place; goroutines are frozen with their threads,
//! which needs another thread that sleeps just then. There the floor of preemptions is lower.

use crate::pulse::{self, migrations};
use crate::text::Lines;
use gosched::runtime::{counters, preemptions};
use std::fs;
use std::time::Duration;

/// Preemptions in a second.
const PREEMPTIONS: u64 = 2_000;
/// The same where goroutines are frozen.
const FROZEN: u64 = 500;
/// Goroutines seen on another thread than before, in a second.
const MIGRATIONS: u64 = 500;

/// Counts since the start, or between two moments.
#[derive(Debug)]
pub(crate) struct Seen {
    counts: Vec<(&'static str, u64)>,
    /// Ticks of all CPUs.
    ticks: u64,
    /// Those of this process.
    own: u64,
    secs: f64,
}

impl Seen {
    pub(crate) fn now() -> Seen {
        let (preempted, counted) = (preemptions(), counters());
        let counts = vec![
            ("preemptions", preempted.in_place + preempted.frozen),
            ("migrations", migrations()),
            ("deferred_in_libc", preempted.in_libc),
            ("refused_in_handler", preempted.in_user_handler),
            ("frozen", preempted.frozen),
            ("forced", preempted.forced),
            ("undeclared_hand_offs", counted.undeclared_hand_offs),
        ];
        Seen { counts, ticks: machine_ticks(), own: own_ticks(), secs: 0.0 }
    }

    /// The difference.
    pub(crate) fn since(self, before: &Seen, time: Duration) -> Seen {
        let pairs = self.counts.iter().zip(&before.counts);
        Seen {
            counts: pairs.map(|((name, now), (_, then))| (*name, now - then)).collect(),
            ticks: self.ticks - before.ticks,
            own: self.own - before.own,
            secs: time.as_secs_f64(),
        }
    }

    /// The share of the machine that this process had.
    fn share(&self) -> f64 {
        (self.own as f64 / self.ticks.max(1) as f64).min(1.0)
    }

    /// How many of `name` there must be.
    fn floor(&self, name: &str) -> u64 {
        let share = self.share();
        let scaled = |floor: u64| (floor as f64 * self.secs * share * share) as u64;
        match name {
            "undeclared_hand_offs" => 1,
            _ if !pulse::has_signals() => 0,
            "preemptions" if pulse::shares_thread_locals() => scaled(FROZEN),
            "preemptions" => scaled(PREEMPTIONS),
            "migrations" | "forced" if pulse::shares_thread_locals() => 0,
            "migrations" => scaled(MIGRATIONS),
            _ => 1,
        }
    }

    /// Whether a longer run may show what this one has not: something was never seen.
    pub(crate) fn is_too_short(&self) -> bool {
        self.counts.iter().any(|(name, count)| *count == 0 && self.floor(name) == 1)
    }

    /// Prints the counts; the process's exit code.
    pub(crate) fn judge(&self, lines: &Lines) -> i32 {
        let share = self.share();
        lines.say(&format!("share={:.0}%", share * 100.0));
        if !pulse::has_signals() {
            lines.say(
                "SKIPPED: nothing is stopped by signals where machines are found through a slot",
            );
        }
        let mut code = 0;
        for (name, count) in &self.counts {
            let floor = self.floor(name);
            lines.say(&format!("{name}={count}"));
            if *count < floor {
                lines.say(&format!("too few {name}: {count}, not {floor}"));
                code = 1;
            }
        }
        code
    }
}

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
fn machine_ticks() -> u64 {
    let text = fs::read_to_string("/proc/stat").expect("/proc is mounted");
    let line = text.lines().next().expect("the sum of all CPUs");
    line.split_whitespace().skip(1).take(8).flat_map(str::parse::<u64>).sum()
}

fn own_ticks() -> u64 {
    let text = fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
    let after_name = text.rsplit(')').next().expect("the name is in brackets");
    after_name.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>).sum()
}
