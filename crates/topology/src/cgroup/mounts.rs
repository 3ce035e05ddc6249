//! Where cgroups are mounted: `/proc/self/mountinfo`.

use std::path::PathBuf;

/// Which of the two designs of cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hierarchy {
    /// One tree for each set of controllers; here, that of `cpu`.
    One,
    /// One tree for all.
    Two,
}

/// A mount of a hierarchy that may have quotas of CPU time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) hierarchy: Hierarchy,
    /// The group that is seen at the mount point.
    pub(super) root: PathBuf,
    pub(super) point: PathBuf,
}

/// Those mounts, in order; lines that are garbled are left out.
pub(super) fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(parse_line).collect()
}

/// `ID PARENT DEVICE ROOT POINT OPTIONS [FIELD]... - TYPE SOURCE OPTIONS`
fn parse_line(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, point) = (mount.next()?, mount.next()?);
    let mut file_system = file_system.split(' ');
    let (kind, _source, options) = (file_system.next()?, file_system.next()?, file_system.next());
    let hierarchy = match kind {
        "cgroup2" => Hierarchy::Two,
        "cgroup" if options?.split(',').any(|option| option == "cpu") => Hierarchy::One,
        _ => return None,
    };
    let is_absolute = root.starts_with('/') && point.starts_with('/');
    is_absolute.then(|| Mount { hierarchy, root: unescape(root), point: unescape(point) })
}

/// Spaces, tabs, line ends and backslashes are written as `\` and three octal digits.
fn unescape(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = octal(after).filter(|_| *first == b'\\');
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    std::ffi::OsString::from_vec(bytes).into()
}

fn octal(text: &[u8]) -> Option<u8> {
    let digits = text.get(..3)?;
    let value = digits.iter().try_fold(0_u32, |sum, digit| {
        matches!(digit, b'0'..=b'7').then(|| sum * 8 + u32::from(digit - b'0'))
    })?;
    u8::try_from(value).ok()
}
