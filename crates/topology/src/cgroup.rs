//! The CPU quotas of all cgroups that hold this process.
//!
//! A quota of any ancestor holds for all below it, so the files of the whole chain are opened, from
//! the process's own group up to the mount point, and the strictest of them counts. (Go reads the
//! group's own only.) Both versions are looked at, since on a hybrid system either may have the
//! `cpu` controller.
//!
//! The files stay open: who follows a quota reads them again and again without allocating.

mod mounts;

use crate::kernel_text::number;
use crate::quota::CpuQuota;
use crate::root::Root;
use gosched_base::os;
use mounts::{Hierarchy, Mount};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Groups whose quotas are read at most: deeper trees are not seen in practice.
const SEEN_MAX: usize = 64;
/// What `/proc/self/cgroup` is compared by.
const MEMBERSHIP_BYTES: usize = 4096;

/// The quotas that hold for this process.
#[derive(Debug)]
pub struct Quotas {
    groups: Vec<Group>,
    membership: Option<Membership>,
}

/// One cgroup with files of a quota.
#[derive(Debug)]
struct Group {
    path: PathBuf,
    files: Files,
}

#[derive(Debug)]
enum Files {
    /// `cpu.max`.
    Two(File),
    /// `cpu.cfs_quota_us` and `cpu.cfs_period_us`.
    One { quota: File, period: File },
}

/// The file that says which groups hold this process, as it was.
#[derive(Debug)]
struct Membership {
    file: File,
    hash: u64,
}

impl Quotas {
    /// Finds the groups of this process and opens their files. Without cgroups there are none.
    #[must_use]
    pub fn open(root: &Root) -> Quotas {
        // First: a move that comes later shows as one.
        let membership = Membership::open(root);
        let mut groups: Vec<Group> = Vec::new();
        for (folder, hierarchy) in folders(root) {
            let is_known = groups.iter().any(|group| group.path == folder);
            if !is_known
                && groups.len() < SEEN_MAX
                && let Some(files) = Files::open(&root.path(&folder), hierarchy)
            {
                groups.push(Group { path: folder, files });
            }
        }
        Quotas { groups, membership }
    }

    /// The strictest quota now. Does not allocate.
    #[must_use]
    pub fn strictest(&self) -> Option<CpuQuota> {
        self.groups.iter().filter_map(|group| group.files.read()).reduce(CpuQuota::stricter)
    }

    /// Every group that may have a quota, the innermost first, with the quota it has now.
    pub fn groups(&self) -> impl Iterator<Item = (&Path, Option<CpuQuota>)> {
        self.groups.iter().map(|group| (group.path.as_path(), group.files.read()))
    }

    /// Whether the process is in other groups than it was at [`open`](Quotas::open). Does not
    /// allocate.
    #[must_use]
    pub fn are_stale(&self) -> bool {
        self.membership.as_ref().is_some_and(|membership| membership.now() != membership.hash)
    }
}

/// The folders of all groups that hold this process, from the inside out in each hierarchy.
fn folders(root: &Root) -> Vec<(PathBuf, Hierarchy)> {
    let membership = root.read("/proc/self/cgroup").unwrap_or_default();
    let mounts = mounts::parse(&root.read("/proc/self/mountinfo").unwrap_or_default());
    let mut folders = Vec::new();
    for (hierarchy, path) in membership.lines().filter_map(parse_membership) {
        for mount in mounts.iter().filter(|mount| mount.hierarchy == hierarchy) {
            folders.extend(chain(mount, path).into_iter().map(|folder| (folder, hierarchy)));
        }
    }
    folders
}

/// A line `NUMBER:CONTROLLERS:PATH` of a hierarchy that may have quotas of CPU time.
fn parse_membership(line: &str) -> Option<(Hierarchy, &Path)> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let hierarchy = match (number, controllers) {
        ("0", "") => Hierarchy::Two,
        (_, controllers) if controllers.split(',').any(|one| one == "cpu") => Hierarchy::One,
        _ => return None,
    };
    // The kernel marks groups that were removed.
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.starts_with('/').then_some((hierarchy, Path::new(path)))
}

/// The folders of the group `path` and of its ancestors, as far as `mount` shows them.
///
/// Both are seen from the process's cgroup namespace: what is outside begins with `..`. A mount of
/// an unrelated subtree shows nothing. One of an outer group shows only itself, since the names on
/// the way from there to the namespace are not known.
fn chain(mount: &Mount, path: &Path) -> Vec<PathBuf> {
    let Ok(below) = path.strip_prefix(&mount.root) else {
        let is_outer = mount.root.components().skip(1).all(|part| part.as_os_str() == "..");
        return if is_outer { vec![mount.point.clone()] } else { Vec::new() };
    };
    if below.components().any(|part| part.as_os_str() == "..") {
        return Vec::new();
    }
    let folders = below.ancestors().map(|part| match part.as_os_str().is_empty() {
        true => mount.point.clone(),
        false => mount.point.join(part),
    });
    folders.collect()
}

impl Files {
    fn open(folder: &Path, hierarchy: Hierarchy) -> Option<Files> {
        let open = |name| File::open(folder.join(name)).ok();
        Some(match hierarchy {
            Hierarchy::Two => Files::Two(open("cpu.max")?),
            Hierarchy::One => {
                Files::One { quota: open("cpu.cfs_quota_us")?, period: open("cpu.cfs_period_us")? }
            }
        })
    }

    /// The quota, if there is one.
    fn read(&self) -> Option<CpuQuota> {
        let (mut first, mut second) = ([0; 64], [0; 64]);
        match self {
            Files::Two(file) => {
                let text = read(file, &mut first)?.trim_ascii();
                let space = text.iter().position(|byte| *byte == b' ')?;
                // `max` is no number.
                CpuQuota::new(number(&text[..space])?, number(&text[space..])?)
            }
            Files::One { quota, period } => {
                // -1 is no number.
                let quota = number(read(quota, &mut first)?)?;
                CpuQuota::new(quota, number(read(period, &mut second)?)?)
            }
        }
    }
}

impl Membership {
    fn open(root: &Root) -> Option<Membership> {
        let file = File::open(root.path(Path::new("/proc/self/cgroup"))).ok()?;
        let mut membership = Membership { file, hash: 0 };
        membership.hash = membership.now();
        Some(membership)
    }

    /// FNV-1a of the text. A file that can't be read is like an empty one.
    fn now(&self) -> u64 {
        let mut text = [0; MEMBERSHIP_BYTES];
        let text = read(&self.file, &mut text).unwrap_or_default();
        text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// The start of a file. Does not allocate.
pub(crate) fn read<'a>(file: &File, into: &'a mut [u8]) -> Option<&'a [u8]> {
    let count = os::read_at(file.as_raw_fd(), into, 0).ok()?;
    into.get(..count)
}
