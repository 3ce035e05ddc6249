//! Sets of CPUs.

use crate::kernel_text::{field, ranges};
use crate::root::Root;
use gosched_base::os::{self, Errno};
use std::fmt;

/// CPUs have smaller numbers; whatever names a greater one is garbled. The kernel's bound is 8,192.
const CPUS_MAX: u32 = 1 << 16;
const WORDS_MAX: usize = CPUS_MAX as usize / 64;
/// The kernel's `EINVAL`: its mask is larger than ours.
const EINVAL: i32 = 22;

/// A set of CPUs, by the kernel's numbers.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CpuSet {
    /// No zeros at the end.
    words: Vec<u64>,
}

impl CpuSet {
    /// The set of a list such as `0-3,8`; `None` if it is garbled.
    ///
    /// ```
    /// use gosched_topology::CpuSet;
    ///
    /// let set = CpuSet::parse("0-2,8\n").unwrap();
    /// assert_eq!(set.iter().collect::<Vec<_>>(), [0, 1, 2, 8]);
    /// assert_eq!(CpuSet::parse("2-"), None);
    /// ```
    #[must_use]
    pub fn parse(list: &str) -> Option<CpuSet> {
        let mut set = CpuSet::default();
        for range in ranges(list.as_bytes()) {
            let (first, last) = range.filter(|(_, last)| *last < CPUS_MAX)?;
            (first..=last).for_each(|cpu| set.insert(cpu));
        }
        Some(set)
    }

    fn from_words(words: &[u64]) -> CpuSet {
        let used = words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        CpuSet { words: words[..used].to_vec() }
    }

    /// Adds a CPU; one with an impossible number is left out.
    pub fn insert(&mut self, cpu: u32) {
        if cpu >= CPUS_MAX {
            return;
        }
        let word = cpu as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (cpu % 64);
    }

    /// Whether `cpu` is in it.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.words.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 != 0)
    }

    /// How many CPUs are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The CPUs in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.words.len() as u32 * 64).filter(|cpu| self.contains(*cpu))
    }

    /// The set as bits, the lowest CPU first: what `sched_setaffinity` takes.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

impl fmt::Display for CpuSet {
    /// As the kernel writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::default();
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

/// The CPUs that the calling thread may run on; `None` where nobody says.
///
/// Any number of CPUs: the kernel refuses masks that are too small for it.
#[must_use]
pub fn allowed_cpus(root: &Root) -> Option<CpuSet> {
    let set = if root.is_system() {
        let mut words = vec![0; 16];
        loop {
            match os::affinity(&mut words) {
                Ok(filled) => break CpuSet::from_words(&words[..filled.min(words.len())]),
                Err(Errno(EINVAL)) if words.len() < WORDS_MAX => words.resize(words.len() * 2, 0),
                Err(_) => return None,
            }
        }
    } else {
        let status = root.read("/proc/self/status")?;
        let list = field(status.as_bytes(), b"Cpus_allowed_list:")?;
        CpuSet::parse(str::from_utf8(list).ok()?)?
    };
    (!set.is_empty()).then_some(set)
}

/// As the length of [`allowed_cpus`] of the running system, without allocating.
#[must_use]
pub fn count_allowed_cpus() -> Option<usize> {
    let mut words = [0_u64; WORDS_MAX];
    let filled = os::affinity(&mut words).ok()?;
    let count = words.iter().take(filled).map(|word| word.count_ones() as usize).sum();
    (count > 0).then_some(count)
}

/// How many CPUs a `Cpus_allowed_list` in the text of `status` names, without allocating.
pub(crate) fn count_in_status(status: &[u8]) -> Option<usize> {
    let list = field(status, b"Cpus_allowed_list:")?;
    let count = ranges(list).try_fold(0, |sum, range| {
        let (first, last) = range.filter(|(_, last)| *last < CPUS_MAX)?;
        Some(sum + (last - first + 1) as usize)
    })?;
    (count > 0).then_some(count)
}
