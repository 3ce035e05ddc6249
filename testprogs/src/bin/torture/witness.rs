//! Whether the run saw what it is for.
//!
//! The floors of preemptions and migrations hold for each second in which the machine was ours.
//! Where others computed, they shrink with the share of the CPUs that was left, which is all but
//! the kernel's count of ticks that were neither this process's nor idle. They shrink with its
//! square: to stop a goroutine takes two threads that have a CPU, its own and the monitor's. On a
//! machine that does nothing else the floors are what they say.
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
    /// Ticks of all CPUs: in use by anybody, and altogether.
    busy: u64,
    ticks: u64,
    /// Of this process.
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
        let (busy, ticks) = machine_ticks();
        Seen { counts, busy, ticks, own: own_ticks(), secs: 0.0 }
    }

    /// The difference.
    pub(crate) fn since(self, before: &Seen, time: Duration) -> Seen {
        let pairs = self.counts.iter().zip(&before.counts);
        Seen {
            counts: pairs.map(|((name, now), (_, then))| (*name, now - then)).collect(),
            busy: self.busy - before.busy,
            ticks: self.ticks - before.ticks,
            own: self.own - before.own,
            secs: time.as_secs_f64(),
        }
    }

    /// The share of the machine that others did not take.
    fn share(&self) -> f64 {
        let others = self.busy.saturating_sub(self.own);
        1.0 - others as f64 / self.ticks.max(1) as f64
    }

    /// Prints the counts; the process's exit code.
    pub(crate) fn judge(&self, lines: &Lines) -> i32 {
        let share = self.share();
        lines.say(&format!("share={:.0}%", share * 100.0));
        if !pulse::has_signals() {
            lines.say("SKIPPED: nothing is stopped by signals where registers need system calls");
        }
        let scaled = |floor: u64| (floor as f64 * self.secs * share * share) as u64;
        let mut code = 0;
        for (name, count) in &self.counts {
            let floor = match *name {
                "undeclared_hand_offs" => 1,
                _ if !pulse::has_signals() => 0,
                "preemptions" if pulse::shares_thread_locals() => scaled(FROZEN),
                "preemptions" => scaled(PREEMPTIONS),
                "migrations" | "forced" if pulse::shares_thread_locals() => 0,
                "migrations" => scaled(MIGRATIONS),
                _ => 1,
            };
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
fn machine_ticks() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").expect("/proc is mounted");
    let line = text.lines().next().expect("the sum of all CPUs");
    let ticks: Vec<u64> = line.split_whitespace().skip(1).take(8).flat_map(str::parse).collect();
    let all: u64 = ticks.iter().sum();
    (all - ticks[3] - ticks[4], all)
}

fn own_ticks() -> u64 {
    let text = fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
    let after_name = text.rsplit(')').next().expect("the name is in brackets");
    after_name.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>).sum()
}
