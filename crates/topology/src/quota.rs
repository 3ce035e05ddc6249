//! How much CPU time a group of processes may use, and what follows for GOMAXPROCS.

use std::cmp::Ordering;
use std::fmt;

/// So much CPU time in each period, by one cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    quota_us: u64,
    /// Not 0.
    period_us: u64,
}

impl CpuQuota {
    /// `None` where a period is 0, which no kernel writes.
    #[must_use]
    pub fn new(quota_us: u64, period_us: u64) -> Option<CpuQuota> {
        (period_us > 0).then_some(CpuQuota { quota_us, period_us })
    }

    /// The CPUs that this is worth, rounded up.
    #[must_use]
    pub fn cpus_rounded_up(self) -> usize {
        usize::try_from(self.quota_us.div_ceil(self.period_us)).unwrap_or(usize::MAX)
    }

    /// The CPUs that this is worth.
    #[must_use]
    pub fn cpus(self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }

    /// The one that allows less.
    pub(crate) fn stricter(self, other: CpuQuota) -> CpuQuota {
        let [one, two] = [(self, other), (other, self)]
            .map(|(a, b)| u128::from(a.quota_us) * u128::from(b.period_us));
        if one.cmp(&two) == Ordering::Greater { other } else { self }
    }
}

impl fmt::Display for CpuQuota {
    /// In CPUs: `1.50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.cpus())
    }
}

/// Go's default of GOMAXPROCS: the CPUs of the affinity mask, at most the quota rounded up, which
/// counts as 2 at least; 1 at least.
///
/// Below two processors a goroutine that computes makes all others wait, so a small quota gets two
/// where there are two CPUs.
///
/// ```
/// use gosched_topology::{CpuQuota, default_procs};
///
/// assert_eq!(default_procs(8, CpuQuota::new(250_000, 100_000)), 3);
/// assert_eq!(default_procs(8, CpuQuota::new(50_000, 100_000)), 2);
/// assert_eq!(default_procs(1, CpuQuota::new(50_000, 100_000)), 1);
/// assert_eq!(default_procs(8, None), 8);
/// ```
#[must_use]
pub fn default_procs(cpus: usize, quota: Option<CpuQuota>) -> usize {
    let limit = quota.map_or(usize::MAX, |quota| quota.cpus_rounded_up().max(2));
    cpus.min(limit).max(1)
}
