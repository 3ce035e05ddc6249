//! A case in a few numbers, and the table of all.

use super::case::{Contender, Outcome, Work};
use crate::stats::Quantiles;
use crate::table::Table;
use crate::text::ms;
use serde::Serialize;

/// The numbers of one case. Times are in ns.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Who.
    pub contender: Contender,
    /// What.
    pub work: Work,
    /// How many jobs.
    pub jobs: usize,
    /// From the start until the last job was done.
    pub elapsed_ns: f64,
    /// CPU time of the process meanwhile.
    pub cpu_ns: f64,
    /// The most memory that the process had resident.
    pub peak_rss_bytes: u64,
    /// Threads of the process when the last job had been handed over.
    pub threads: u64,
    /// From when a job came until it was done; of light jobs only if there are heavy ones.
    pub latency: Quantiles,
}

impl Figures {
    pub(crate) fn of(outcome: &Outcome) -> Figures {
        Figures {
            contender: outcome.case.contender,
            work: outcome.case.work,
            jobs: outcome.case.jobs,
            elapsed_ns: outcome.elapsed_ns as f64,
            cpu_ns: outcome.cpu_ns as f64,
            peak_rss_bytes: outcome.peak_rss_bytes,
            threads: outcome.threads,
            latency: Quantiles::of(light(outcome)),
        }
    }

    pub(crate) fn megabytes(&self) -> f64 {
        self.peak_rss_bytes as f64 / 1e6
    }
}

/// The latencies that count.
pub(crate) fn light(outcome: &Outcome) -> impl Iterator<Item = u64> {
    let all = outcome.latency_ns.iter().enumerate();
    all.filter(|(i, _)| !outcome.case.work.is_heavy(*i)).map(|(_, latency)| *latency)
}

pub(crate) fn table(figures: &[Figures]) -> Table {
    let row = |f: &Figures| {
        let times = [f.elapsed_ns, f.cpu_ns, f.latency.p50, f.latency.p99, f.latency.max];
        let [elapsed, cpu, p50, p99, max] = times.map(ms);
        let (memory, threads) = (format!("{:.1}", f.megabytes()), f.threads.to_string());
        let name = format!("{} {}", f.work.name(), f.contender.name());
        vec![name, elapsed, cpu, memory, threads, p50, p99, max]
    };
    let head = ["jobs", "all ms", "CPU ms", "peak MB", "threads", "one p50 ms", "p99 ms", "max ms"];
    Table::new(&head, figures.iter().map(row).collect())
}
