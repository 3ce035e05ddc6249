//! What this machine offers, what the runtime has chosen, why, and what to change.
//!
//! For people and for programs that ask once: everything is read when asked for. The facts about
//! stacks and thread-locals are `gosched_fiber`'s.

mod choices;
mod cpus;

pub use gosched_fiber::Fact;

use crate::gomaxprocs::default_procs;
use crate::scheduler::SCHEDULER;
use crate::start::ensure_started;
use std::fmt;

/// What was found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// GOMAXPROCS as it is now.
    pub gomaxprocs: usize,
    /// Where that number comes from, as part of a sentence.
    pub why: String,
    /// What it would be if nobody had said a number.
    pub default_gomaxprocs: usize,
    /// CPUs in the affinity mask.
    pub cpus: usize,
    /// The strictest quota of the cgroups that hold the process, in CPUs.
    pub quota: Option<f64>,
    /// NUMA nodes with CPUs that the process may use.
    pub nodes: usize,
    /// All facts, in the order in which they are printed.
    pub sections: Vec<Section>,
}

/// Facts about the same thing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Section {
    /// A short heading.
    pub title: &'static str,
    /// One line each.
    pub facts: Vec<Fact>,
}

/// Looks at the machine and the process. Starts the runtime if it has not started, with the
/// settings of the environment.
///
/// # Panics
/// If the runtime has to be started for it and can't create its threads.
#[must_use]
pub fn examine() -> Report {
    let settled = ensure_started();
    let seen = settled.sight.look();
    let topology = gosched_topology::Topology::read(&settled.sight.root);
    let sections = vec![
        Section { title: "CPUs", facts: cpus::facts(settled, seen, &topology) },
        Section { title: "Choices", facts: choices::facts(settled) },
        Section { title: "Kernel, libc, stacks and limits", facts: gosched_fiber::doctor().lines },
    ];
    Report {
        gomaxprocs: SCHEDULER.procs() as usize,
        why: choices::why(seen),
        default_gomaxprocs: default_procs(),
        cpus: seen.cpus,
        quota: seen.quota.map(|quota| quota.cpus()),
        nodes: topology.nodes().len(),
        sections,
    }
}

impl Report {
    /// How many facts come with an advice.
    #[must_use]
    pub fn advices(&self) -> usize {
        let facts = self.sections.iter().flat_map(|section| &section.facts);
        facts.filter(|fact| fact.advice.is_some()).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "GOMAXPROCS is {}: {}.", self.gomaxprocs, self.why)?;
        for section in &self.sections {
            writeln!(f, "\n{}", section.title)?;
            for fact in &section.facts {
                writeln!(f, "  {:<24} {}", fact.name, fact.found)?;
                if let Some(advice) = fact.advice {
                    writeln!(f, "  {:<24} -> {advice}", "")?;
                }
            }
        }
        match self.advices() {
            0 => writeln!(f, "\nNothing to change."),
            1 => writeln!(f, "\n1 thing could be better; see the line with ->."),
            n => writeln!(f, "\n{n} things could be better; see the lines with ->."),
        }
    }
}
