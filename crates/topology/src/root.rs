//! Where the kernel's files are.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder below which `/proc`, `/sys` and the cgroups are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The system's own.
    #[must_use]
    pub fn system() -> Root {
        Root(PathBuf::from("/"))
    }

    /// A made-up tree: `folder/proc`, `folder/sys`, and below `folder` whatever its mountinfo names.
    ///
    /// In it the CPUs are those of `proc/self/status`; the kernel is not asked.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Root {
        Root(folder.into())
    }

    /// Whether it is the system's own.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where the file is that a running system has at the absolute `path`.
    #[must_use]
    pub fn path(&self, path: &Path) -> PathBuf {
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file. Bytes that are no text are replaced.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.path(path.as_ref())).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The names in a folder; none if it is not there.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(path.as_ref())).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}
