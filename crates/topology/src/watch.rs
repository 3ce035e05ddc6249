//! The default of GOMAXPROCS, and whether it has changed.

use crate::cgroup::{self, Quotas};
use crate::cpus::{allowed_cpus, count_allowed_cpus, count_in_status};
use crate::quota::{CpuQuota, default_procs};
use crate::root::Root;
use std::fs::File;
use std::path::Path;

/// The size of `/proc/self/status` is about 1,500 bytes.
const STATUS_BYTES: usize = 4096;

/// What the default was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// CPUs of the affinity mask.
    pub cpus: usize,
    /// The strictest quota of all cgroups that hold the process.
    pub quota: Option<CpuQuota>,
    /// The default of GOMAXPROCS that follows.
    pub procs: usize,
}

/// Follows the affinity mask and the quotas in files that stay open.
#[derive(Debug)]
pub struct Watch {
    /// Of a made-up tree; the running system is asked by a call.
    status: Option<File>,
    /// `None` if quotas are not to count.
    quotas: Option<Quotas>,
}

impl Watch {
    /// Opens the files. With `containers` quotas count.
    #[must_use]
    pub fn open(root: &Root, containers: Containers) -> Watch {
        let status = match root.is_system() {
            true => None,
            false => File::open(root.path(Path::new("/proc/self/status"))).ok(),
        };
        let quotas = (containers == Containers::Count).then(|| Quotas::open(root));
        Watch { status, quotas }
    }

    /// What holds now. Does not allocate. `None` where nobody says which CPUs there are.
    #[must_use]
    pub fn look(&self) -> Option<Seen> {
        let cpus = match &self.status {
            None => count_allowed_cpus(),
            Some(status) => {
                let mut text = [0; STATUS_BYTES];
                cgroup::read(status, &mut text).and_then(count_in_status)
            }
        }?;
        let quota = self.quotas.as_ref().and_then(Quotas::strictest);
        Some(Seen { cpus, quota, procs: default_procs(cpus, quota) })
    }

    /// Whether the process has moved to other cgroups, so that this has to be opened anew. Does not
    /// allocate.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.quotas.as_ref().is_some_and(Quotas::are_stale)
    }
}

/// Whether the quotas of cgroups count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containers {
    /// They do.
    Count,
    /// They are not looked at.
    Ignored,
}

/// As [`Watch::look`] once, for the start.
#[must_use]
pub fn look_once(root: &Root, containers: Containers) -> Seen {
    let seen = Watch::open(root, containers).look();
    seen.unwrap_or_else(|| {
        let cpus = allowed_cpus(root).map_or(1, |set| set.len());
        Seen { cpus, quota: None, procs: default_procs(cpus, None) }
    })
}
