//! Files, in the shape of `std::fs`: each call is a declared blocking one.
//!
//! The kernel has no readiness for files on disks: a read waits in the call. So a goroutine keeps
//! its thread meanwhile, and others use its processor. std's own functions work in goroutines as
//! well; these are noticed at once, and don't wait for the monitor.
//!
//! Types without calls that wait are std's: [`Metadata`], [`Permissions`], [`FileType`],
//! [`DirEntry`].

use gosched_sched::blocking;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use std::fs::{DirEntry, FileTimes, FileType, Metadata, Permissions, TryLockError};

/// An open file. std's `File`.
///
/// ```
/// use gosched_os::fs::File;
/// use std::io::Read;
///
/// let mut name = String::new();
/// File::open("/proc/self/comm").unwrap().read_to_string(&mut name).unwrap();
/// assert!(!name.is_empty());
/// ```
pub struct File {
    inner: std::fs::File,
}

/// Methods that are std's, in a declared blocking call.
macro_rules! declared {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(
            $(#[$doc])*
            ///
            /// std's method of the same name.
            ///
            /// # Errors
            /// What the system answers.
            pub fn $name(&self, $($arg: $type),*) -> $out {
                blocking(|| self.inner.$name($($arg),*))
            }
        )*
    };
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// What the system answers.
    pub fn open<P: AsRef<Path>>(path: P) -> io::Result<File> {
        blocking(|| std::fs::File::open(path)).map(File::from)
    }

    /// Opens a file for writing; an old one is emptied.
    ///
    /// # Errors
    /// What the system answers.
    pub fn create<P: AsRef<Path>>(path: P) -> io::Result<File> {
        blocking(|| std::fs::File::create(path)).map(File::from)
    }

    /// Opens a new file for reading and writing.
    ///
    /// # Errors
    /// What the system answers, also that the file exists.
    pub fn create_new<P: AsRef<Path>>(path: P) -> io::Result<File> {
        blocking(|| std::fs::File::create_new(path)).map(File::from)
    }

    /// How a file is to be opened.
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// A second handle to the same open file.
    ///
    /// # Errors
    /// Too many open files.
    pub fn try_clone(&self) -> io::Result<File> {
        self.inner.try_clone().map(File::from)
    }

    declared! {
        /// Writes everything to the disk.
        sync_all() -> io::Result<()>;
        /// Writes the contents to the disk.
        sync_data() -> io::Result<()>;
        /// Makes it so long.
        set_len(size: u64) -> io::Result<()>;
        /// What the system knows of it.
        metadata() -> io::Result<Metadata>;
        /// Who may do what.
        set_permissions(permissions: Permissions) -> io::Result<()>;
        /// When it was used.
        set_times(times: FileTimes) -> io::Result<()>;
        /// When it was changed.
        set_modified(time: SystemTime) -> io::Result<()>;
        /// Waits for its lock, which nobody else has then.
        lock() -> io::Result<()>;
        /// Waits for its lock, which others may share.
        lock_shared() -> io::Result<()>;
        /// Takes its lock if nobody has it.
        try_lock() -> Result<(), TryLockError>;
        /// Takes its shared lock if nobody has the other.
        try_lock_shared() -> Result<(), TryLockError>;
        /// Gives its lock back.
        unlock() -> io::Result<()>;
        /// Reads at a place; the file's own place stays.
        read_at(buffer: &mut [u8], offset: u64) -> io::Result<usize>;
        /// Writes at a place; the file's own place stays.
        write_at(bytes: &[u8], offset: u64) -> io::Result<usize>;
        /// Reads all of the buffer at a place.
        read_exact_at(buffer: &mut [u8], offset: u64) -> io::Result<()>;
        /// Writes all of the bytes at a place.
        write_all_at(bytes: &[u8], offset: u64) -> io::Result<()>;
    }
}

impl Read for &File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        blocking(|| (&self.inner).read(buffer))
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        blocking(|| (&self.inner).read_vectored(buffers))
    }

    fn read_to_end(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        blocking(|| (&self.inner).read_to_end(buffer))
    }

    fn read_to_string(&mut self, buffer: &mut String) -> io::Result<usize> {
        blocking(|| (&self.inner).read_to_string(buffer))
    }
}

impl Write for &File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        blocking(|| (&self.inner).write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        blocking(|| (&self.inner).write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        blocking(|| (&self.inner).seek(to))
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(buffers)
    }

    fn read_to_end(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        (&*self).read_to_end(buffer)
    }

    fn read_to_string(&mut self, buffer: &mut String) -> io::Result<usize> {
        (&*self).read_to_string(buffer)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl From<std::fs::File> for File {
    fn from(inner: std::fs::File) -> File {
        File { inner }
    }
}

impl From<File> for std::fs::File {
    fn from(file: File) -> std::fs::File {
        file.inner
    }
}

impl From<OwnedFd> for File {
    fn from(fd: OwnedFd) -> File {
        File::from(std::fs::File::from(fd))
    }
}

impl From<File> for OwnedFd {
    fn from(file: File) -> OwnedFd {
        file.inner.into()
    }
}

impl From<File> for std::process::Stdio {
    fn from(file: File) -> std::process::Stdio {
        file.inner.into()
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}

impl IntoRawFd for File {
    fn into_raw_fd(self) -> RawFd {
        self.inner.into_raw_fd()
    }
}

impl FromRawFd for File {
    unsafe fn from_raw_fd(fd: RawFd) -> File {
        // SAFETY: by the caller.
        File::from(unsafe { std::fs::File::from_raw_fd(fd) })
    }
}

/// How a file is to be opened. std's `OpenOptions`.
///
/// ```
/// use gosched_os::fs::OpenOptions;
///
/// assert!(OpenOptions::new().read(true).open("/no/such/file").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions(std::fs::OpenOptions);

/// Settings that are std's.
macro_rules! options {
    ($($(#[$doc:meta])* $name:ident($type:ty);)*) => {
        $(
            $(#[$doc])*
            pub fn $name(&mut self, value: $type) -> &mut OpenOptions {
                self.0.$name(value);
                self
            }
        )*
    };
}

impl OpenOptions {
    /// Nothing is allowed yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "std's has no default either")]
    pub fn new() -> OpenOptions {
        OpenOptions(std::fs::OpenOptions::new())
    }

    options! {
        /// For reading.
        read(bool);
        /// For writing.
        write(bool);
        /// Each write goes to the end.
        append(bool);
        /// What was in it is thrown away.
        truncate(bool);
        /// It is made if it is missing.
        create(bool);
        /// It must be missing, and is made.
        create_new(bool);
        /// Who may do what with a file that is made.
        mode(u32);
        /// More flags of `open(2)`.
        custom_flags(i32);
    }

    /// Opens the file.
    ///
    /// # Errors
    /// What the system answers.
    pub fn open<P: AsRef<Path>>(&self, path: P) -> io::Result<File> {
        blocking(|| self.0.open(path)).map(File::from)
    }
}

/// Functions that are std's, in a declared blocking call.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident<$($kind:ident),*>($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(
            $(#[$doc])*
            ///
            /// std's function of the same name.
            ///
            /// # Errors
            /// What the system answers.
            pub fn $name<$($kind: AsRef<Path>),*>($($arg: $type),*) -> io::Result<$out> {
                blocking(|| std::fs::$name($($arg),*))
            }
        )*
    };
}

functions! {
    /// All bytes of a file.
    read<P>(path: P) -> Vec<u8>;
    /// A file's text.
    read_to_string<P>(path: P) -> String;
    /// What the system knows of a file, at the end of symbolic links.
    metadata<P>(path: P) -> Metadata;
    /// What the system knows of a file, or of the symbolic link itself.
    symlink_metadata<P>(path: P) -> Metadata;
    /// Gives a file another name.
    rename<P, Q>(from: P, to: Q) -> ();
    /// Copies a file's contents and permissions; how many bytes.
    copy<P, Q>(from: P, to: Q) -> u64;
    /// Gives a file one more name.
    hard_link<P, Q>(original: P, link: Q) -> ();
    /// Where a symbolic link points.
    read_link<P>(path: P) -> PathBuf;
    /// The absolute path without symbolic links.
    canonicalize<P>(path: P) -> PathBuf;
    /// Makes a directory.
    create_dir<P>(path: P) -> ();
    /// Makes a directory and those above it.
    create_dir_all<P>(path: P) -> ();
    /// Removes an empty directory.
    remove_dir<P>(path: P) -> ();
    /// Removes a directory and all in it.
    remove_dir_all<P>(path: P) -> ();
    /// Removes a file.
    remove_file<P>(path: P) -> ();
    /// Who may do what with a file.
    set_permissions<P>(path: P, permissions: Permissions) -> ();
    /// Whether a file is there.
    exists<P>(path: P) -> bool;
}

/// Writes a whole file. std's function of the same name.
///
/// # Errors
/// What the system answers.
pub fn write<P: AsRef<Path>, C: AsRef<[u8]>>(path: P, contents: C) -> io::Result<()> {
    blocking(|| std::fs::write(path, contents))
}

/// What is in a directory. std's function of the same name.
///
/// ```
/// let names: Vec<_> = gosched_os::fs::read_dir("/proc/self")
///     .unwrap()
///     .map(|entry| entry.unwrap().file_name())
///     .collect();
/// assert!(names.iter().any(|name| name == "comm"));
/// ```
///
/// # Errors
/// What the system answers.
pub fn read_dir<P: AsRef<Path>>(path: P) -> io::Result<ReadDir> {
    blocking(|| std::fs::read_dir(path)).map(ReadDir)
}

/// The iterator of [`read_dir`].
#[derive(Debug)]
#[must_use = "entries are read by iterating"]
pub struct ReadDir(std::fs::ReadDir);

impl Iterator for ReadDir {
    type Item = io::Result<DirEntry>;

    fn next(&mut self) -> Option<io::Result<DirEntry>> {
        blocking(|| self.0.next())
    }
}
