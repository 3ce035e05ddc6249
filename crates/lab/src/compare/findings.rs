//! What the numbers of a comparison say.

use super::case::{Contender, Work};
use super::figures::Figures;
use crate::findings::Finding;
use crate::text::{ms, times};

/// How far apart contenders may be where all need the same CPU time.
const SAME_MAX: f64 = 1.25;

/// From where on somebody is behind.
const BEHIND_MIN: f64 = 1.5;

/// One finding for each kind of work that has numbers.
pub(super) fn all(figures: &[Figures]) -> Vec<Finding> {
    let of = |work: Work| figures.iter().filter(move |f| f.work == work).collect::<Vec<_>>();
    [cpu(&of(Work::Cpu)), io(&of(Work::Io)), mixed(&of(Work::Mixed))]
        .into_iter()
        .flatten()
        .collect()
}

fn find<'a>(figures: &[&'a Figures], contender: Contender) -> Option<&'a Figures> {
    figures.iter().copied().find(|f| f.contender == contender)
}

/// Everybody by one number, the smallest first.
fn ranking(figures: &[&Figures], of: fn(&Figures) -> f64, unit: fn(&Figures) -> String) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_by(|a, b| of(a).total_cmp(&of(b)));
    let each = sorted.iter().map(|f| format!("{} {}", f.contender.name(), unit(f)));
    each.collect::<Vec<_>>().join(", ")
}

fn elapsed(figures: &[&Figures]) -> String {
    ranking(figures, |f| f.elapsed_ns, |f| format!("{} ms", ms(f.elapsed_ns)))
}

fn memory(figures: &[&Figures]) -> String {
    ranking(figures, Figures::megabytes, |f| format!("{:.1} MB", f.megabytes()))
}

fn tail(figures: &[&Figures]) -> String {
    ranking(figures, |f| f.latency.p99, |f| format!("{} ms", ms(f.latency.p99)))
}

fn cpu(figures: &[&Figures]) -> Option<Finding> {
    let goroutines = find(figures, Contender::Goroutines)?;
    let best = figures.iter().map(|f| f.elapsed_ns).fold(f64::INFINITY, f64::min);
    let question = "Who is fastest where all compute?";
    let figures = format!("All jobs took: {}; memory: {}.", elapsed(figures), memory(figures));
    let ratio = times(goroutines.elapsed_ns / best.max(1.0));
    Some(if goroutines.elapsed_ns <= SAME_MAX * best {
        let why = format!(
            "The CPUs are the limit, whoever uses them: goroutines took {ratio} times the best."
        );
        Finding::expected(question, [figures, why])
    } else {
        let why = format!(
            "The CPUs were expected to be the limit for everybody, and the numbers do not show it: \
             goroutines took {ratio} times the best. They used {} ms of CPU time meanwhile; what \
             is missing to that of all CPUs went to other programs, or to nobody.",
            ms(goroutines.cpu_ns),
        );
        Finding::unexpected(question, [figures, why])
    })
}

fn io(figures: &[&Figures]) -> Option<Finding> {
    let goroutines = find(figures, Contender::Goroutines)?;
    let pool = find(figures, Contender::Pool)?;
    let threads = find(figures, Contender::Threads)?;
    let question = "Who is fastest where all wait for answers?";
    let all = format!("All jobs took: {}; memory: {}.", elapsed(figures), memory(figures));
    let queues = pool.elapsed_ns >= BEHIND_MIN * goroutines.elapsed_ns;
    let price = format!(
        "A goroutine that waits costs no thread: the process had {} threads when all jobs had been \
         handed over, and {} with a thread for each.",
        goroutines.threads, threads.threads,
    );
    Some(if queues {
        let why = format!(
            "A pool's thread waits with its job, so jobs queue for threads: it took {} times as \
             long as goroutines.",
            times(pool.elapsed_ns / goroutines.elapsed_ns.max(1.0)),
        );
        Finding::expected(question, [all, why, price])
    } else {
        let why = format!(
            "The pool was expected to take {BEHIND_MIN} times as long as goroutines at least, \
             because its threads wait with their jobs, and took {} times as long.",
            times(pool.elapsed_ns / goroutines.elapsed_ns.max(1.0)),
        );
        Finding::unexpected(question, [all, why, price])
    })
}

fn mixed(figures: &[&Figures]) -> Option<Finding> {
    let goroutines = find(figures, Contender::Goroutines)?;
    let question = "How long do light jobs wait for heavy ones?";
    let all = format!("Light jobs took at p99: {}.", tail(figures));
    let Some(event_loop) = find(figures, Contender::EventLoop) else {
        let fastest = figures.iter().map(|f| f.latency.p99).fold(f64::INFINITY, f64::min);
        let ratio = goroutines.latency.p99 / fastest.max(1.0);
        let why = format!("That is {} times the best for goroutines", times(ratio));
        return Some(if ratio <= BEHIND_MIN {
            let why = format!("{why}: who computes for long is stopped for the others.");
            Finding::expected(question, [all, why])
        } else {
            let why = format!("{why}, where {BEHIND_MIN} times at most was expected.");
            Finding::unexpected(question, [all, why, share(goroutines)])
        });
    };
    let ratio = event_loop.latency.p99 / goroutines.latency.p99.max(1.0);
    Some(if ratio >= BEHIND_MIN {
        let why = format!(
            "Nothing stops a task of an event loop that computes, so those behind it wait: {} \
             times as long as with goroutines, which are stopped.",
            times(ratio)
        );
        Finding::expected(question, [all, why])
    } else {
        let why = format!(
            "With the event loop they were expected to wait {BEHIND_MIN} times as long as with \
             goroutines at least, because nothing stops a task that computes; it was {} times.",
            times(ratio)
        );
        Finding::unexpected(question, [all, why, share(goroutines)])
    })
}

/// Whether the CPUs were half free, as the jobs would leave them.
fn share(goroutines: &Figures) -> String {
    format!(
        "Jobs come so that half of the CPUs' time is free, if no other program has it: the process \
         with goroutines used {} ms of CPU time in {} ms.",
        ms(goroutines.cpu_ns),
        ms(goroutines.elapsed_ns),
    )
}
