//! Whether the run saw what it is for.
//!
//! The floors of preemptions and migrations grow with the time asked for, up to twenty seconds of it; of
//! the other decisions each is to be seen once. They are counts, not rates: how many stops there are in
//! a second is the machine's affair (others compute, the host keeps a CPU back, the monitor's thread
//! waits for one), and a run goes on until it has them all, for some time.
//!
//! With shared thread-locals nothing is stopped in place; goroutines are frozen with their threads,
//! which needs another thread that sleeps just then. There the floor of preemptions is lower.

use crate::pulse::{self, migrations};
use crate::text::Lines;
use gosched::runtime::{counters, preemptions};
use std::fs;
use std::time::Duration;

/// Preemptions for each second asked for.
const PREEMPTIONS: u64 = 2_000;
/// The same where goroutines are frozen.
const FROZEN: u64 = 500;
/// Goroutines seen on another thread than before, for each second asked for.
const MIGRATIONS: u64 = 500;
/// More seconds than this ask for no more of them.
const COUNTED_SECS: u64 = 20;

/// Counts since the start, or between two moments.
#[derive(Debug)]
pub(crate) struct Seen {
    counts: Vec<(&'static str, u64)>,
    /// Ticks of all CPUs.
    ticks: u64,
    /// Those of this process.
    own: u64,
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
        Seen { counts, ticks: machine_ticks(), own: own_ticks() }
    }

    /// The difference.
    pub(crate) fn since(self, before: &Seen) -> Seen {
        let pairs = self.counts.iter().zip(&before.counts);
        Seen {
            counts: pairs.map(|((name, now), (_, then))| (*name, now - then)).collect(),
            ticks: self.ticks - before.ticks,
            own: self.own - before.own,
        }
    }

    /// The share of the machine that this process had.
    fn share(&self) -> f64 {
        (self.own as f64 / self.ticks.max(1) as f64).min(1.0)
    }

    /// Those of which there were fewer than a run of `asked` must have seen, and how many that is.
    fn missing(&self, asked: Duration) -> impl Iterator<Item = (&'static str, u64, u64)> {
        self.counts.iter().filter_map(move |(name, count)| {
            let floor = floor(name, asked);
            (*count < floor).then_some((*name, *count, floor))
        })
    }

    /// Whether it has all that a run of `asked` must have seen.
    pub(crate) fn is_enough(&self, asked: Duration) -> bool {
        self.missing(asked).next().is_none()
    }

    /// Prints the counts; the process's exit code.
    pub(crate) fn judge(&self, asked: Duration, took: Duration, lines: &Lines) -> i32 {
        lines.say(&format!("share={:.0}%", self.share() * 100.0));
        if !pulse::has_signals() {
            lines.say(
                "SKIPPED: nothing is stopped by signals where machines are found through a slot",
            );
        }
        for (name, count) in &self.counts {
            lines.say(&format!("{name}={count}"));
        }
        for (name, count, floor) in self.missing(asked) {
            lines.say(&format!("too few {name}: {count} in {took:.1?}, not {floor}"));
        }
        i32::from(!self.is_enough(asked))
    }
}

/// How many of `name` there must be.
fn floor(name: &str, asked: Duration) -> u64 {
    let secs = asked.as_secs().min(COUNTED_SECS);
    match name {
        "undeclared_hand_offs" => 1,
        _ if !pulse::has_signals() => 0,
        "preemptions" if pulse::shares_thread_locals() => FROZEN * secs,
        "preemptions" => PREEMPTIONS * secs,
        "migrations" | "forced" if pulse::shares_thread_locals() => 0,
        "migrations" => MIGRATIONS * secs,
        _ => 1,
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
