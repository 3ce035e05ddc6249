//! What the machine offers this process: CPUs, how near they are to each other, and the quota of
//! its containers.
//!
//! Layer: `topology`. Uses `base`. Knows nothing of processors or goroutines.
//!
//! * [`Root`]: where `/proc` and `/sys` are; tests have trees of their own.
//! * [`CpuSet`]: a set of CPUs, as the kernel writes it.
//! * [`Topology`]: siblings of one core, shared L3, NUMA nodes and their distances.
//! * [`Quotas`]: the CPU quotas of all cgroups that hold this process, in files that stay open.
//! * [`Watch`]: the default of GOMAXPROCS, and whether it has changed, without allocating.
//!
//! Whatever is missing, unreadable or garbled counts as not there; nothing here fails or panics.
#![forbid(unsafe_code)]

mod cgroup;
mod cpus;
mod kernel_text;
mod machine;
mod quota;
mod root;
mod watch;

pub use cgroup::Quotas;
pub use cpus::{CpuSet, allowed_cpus, count_allowed_cpus};
pub use machine::{Cpu, Nearness, Node, Topology};
pub use quota::{CpuQuota, default_procs};
pub use root::Root;
pub use watch::{Containers, Seen, Watch, look_once};
