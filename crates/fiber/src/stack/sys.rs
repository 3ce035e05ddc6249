//! The system calls of the stack allocator, one small function each.
//!
//! Ranges are plain addresses: this memory is never seen through references before it is handed
//! out. Functions that can destroy memory somebody uses are `unsafe`.

use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::AtomicU32;

/// Linux 6.13: faults in the range are fatal, without a mapping of its own.
const MADV_GUARD_INSTALL: libc::c_int = 102;
/// Linux 6.14: stands for a descriptor of the calling thread's process.
const PIDFD_SELF: libc::c_int = -10_000;
/// Linux 5.18: `MADV_DONTNEED` that is allowed in locked memory.
const MADV_DONTNEED_LOCKED: libc::c_int = 24;
/// Linux 5.14: makes pages present, to be written.
const MADV_POPULATE_WRITE: libc::c_int = 23;

/// The page size of every Linux on x86-64.
pub(crate) const PAGE: usize = 4096;

/// What code may do in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    None,
    ReadWrite,
}

impl Access {
    fn bits(self) -> libc::c_int {
        match self {
            Self::None => libc::PROT_NONE,
            Self::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        }
    }
}

/// Maps fresh anonymous memory that no swap space is set aside for.
pub(crate) fn map(bytes: usize, access: Access) -> io::Result<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: no fixed address is asked for, so no memory in use is affected.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, access.bits(), flags, -1, 0) };
    if at == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(at.expose_provenance())
    }
}

/// Removes mappings.
///
/// # Safety
/// * The range came from `map`, and nobody uses it.
pub(crate) unsafe fn unmap(range: Range<usize>) {
    // SAFETY: unused - the caller's first obligation.
    unsafe { libc::munmap(pointer(range.start), range.len()) };
}

/// Changes what code may do in a range.
///
/// # Safety
/// * The range lies in memory from `map`, and nobody relies on its present access.
pub(crate) unsafe fn protect(range: Range<usize>, access: Access) -> io::Result<()> {
    // SAFETY: not relied on - the caller's only obligation.
    check(unsafe { libc::mprotect(pointer(range.start), range.len(), access.bits()) })
}

/// Keeps transparent huge pages out: one touched byte must not cost 2 MiB.
pub(super) fn forbid_huge_pages(range: Range<usize>) {
    // SAFETY: advice about page sizes changes no contents. It fails on kernels that have no huge
    // pages, which is as good.
    let _ = unsafe { libc::madvise(pointer(range.start), range.len(), libc::MADV_NOHUGEPAGE) };
}

/// Puts guard markers over a range.
///
/// # Safety
/// * The range lies in memory from `map`, and nobody uses it.
pub(super) unsafe fn install_markers(range: Range<usize>) -> io::Result<()> {
    // SAFETY: unused - the caller's only obligation.
    check(unsafe { libc::madvise(pointer(range.start), range.len(), MADV_GUARD_INSTALL) })
}

/// Makes the pages of a range present in one go. Where the kernel can't, touching them does.
pub(super) fn populate(range: Range<usize>) {
    // SAFETY: contents stay as they are.
    let _ = unsafe { libc::madvise(pointer(range.start), range.len(), MADV_POPULATE_WRITE) };
}

/// Gives the pages of a range back; they read as zero afterwards. Guards stay.
///
/// # Safety
/// * The range lies in memory from `map`, and nobody needs its contents.
pub(super) unsafe fn drop_pages(range: Range<usize>) -> io::Result<()> {
    // SAFETY: not needed - the caller's only obligation.
    let plain =
        check(unsafe { libc::madvise(pointer(range.start), range.len(), libc::MADV_DONTNEED) });
    match plain {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            // SAFETY: not needed - the caller's only obligation.
            check(unsafe { libc::madvise(pointer(range.start), range.len(), MADV_DONTNEED_LOCKED) })
        }
        other => other,
    }
}

/// As many ranges as are given to the kernel in one call.
pub(super) const RANGES_AT_ONCE: usize = 64;

/// As [`drop_pages`], for many ranges, whatever fails.
///
/// Other CPUs that run this process are interrupted once for all of them (Linux 6.16), instead of
/// once for each: a sixth of the time, and less trouble for them.
///
/// # Safety
/// * As for [`drop_pages`], for each range.
pub(super) unsafe fn drop_pages_of(ranges: &[Range<usize>]) {
    for some in ranges.chunks(RANGES_AT_ONCE) {
        // SAFETY: not needed - the caller's only obligation.
        if unsafe { advise_all(some, libc::MADV_DONTNEED) } {
            continue;
        }
        // An older kernel, or locked memory.
        for range in some {
            // SAFETY: not needed - the caller's only obligation.
            let _ = unsafe { drop_pages(range.clone()) };
        }
    }
}

/// As [`install_markers`], for at most [`RANGES_AT_ONCE`]. False: some may lack theirs.
///
/// # Safety
/// * As for [`install_markers`], for each range.
pub(super) unsafe fn install_markers_of(ranges: &[Range<usize>]) -> bool {
    // SAFETY: unused - the caller's only obligation.
    unsafe { advise_all(ranges, MADV_GUARD_INSTALL) }
}

/// As [`populate`], for at most [`RANGES_AT_ONCE`].
pub(super) fn populate_all(ranges: &[Range<usize>]) {
    // SAFETY: contents stay as they are.
    let _ = unsafe { advise_all(ranges, MADV_POPULATE_WRITE) };
}

/// `madvise` for at most [`RANGES_AT_ONCE`] in one call (Linux 6.14). False if it did not do all.
///
/// # Safety
/// * Nobody uses the ranges, or the advice changes no contents.
unsafe fn advise_all(ranges: &[Range<usize>], advice: libc::c_int) -> bool {
    let mut vector = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; RANGES_AT_ONCE];
    for (one, range) in vector.iter_mut().zip(ranges) {
        *one = libc::iovec { iov_base: pointer(range.start), iov_len: range.len() };
    }
    let bytes: usize = ranges.iter().map(|range| range.len()).sum();
    let (number, at) = (libc::SYS_process_madvise, vector.as_ptr());
    // SAFETY: as many entries as there are ranges; what becomes of those is the caller's obligation.
    let done = unsafe { libc::syscall(number, PIDFD_SELF, at, ranges.len(), advice, 0) };
    usize::try_from(done) == Ok(bytes)
}

/// How many bytes of a range are in memory.
pub(super) fn resident(range: Range<usize>) -> usize {
    let mut pages = [0_u8; 256];
    let mut count = 0;
    for start in range.clone().step_by(pages.len() * PAGE) {
        let bytes = (range.end - start).min(pages.len() * PAGE);
        // SAFETY: `pages` has room for a byte for each page; memory that is not mapped is an error.
        if unsafe { libc::mincore(pointer(start), bytes, pages.as_mut_ptr()) } == 0 {
            count += pages[..bytes / PAGE].iter().filter(|page| **page & 1 != 0).count();
        }
    }
    count * PAGE
}

/// Undoes what `mlockall` did to a range.
pub(super) fn unlock_pages(range: Range<usize>) {
    // SAFETY: contents stay as they are. Fails only for ranges that are not mapped.
    let _ = unsafe { libc::munlock(pointer(range.start), range.len()) };
}

/// The limit of address space, if there is one.
pub(super) fn address_space_limit() -> Option<usize> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is valid for a write of its type.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
}

/// Reads the start of a small file under `/proc`. Returns how many bytes there were.
pub(super) fn read_file(path: &std::ffi::CStr, into: &mut [u8]) -> Option<usize> {
    // SAFETY: `path` ends with a zero byte, and no third argument is needed without O_CREAT.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    // SAFETY: `into` is valid for writes of its length.
    let count = unsafe { libc::read(file, into.as_mut_ptr().cast(), into.len()) };
    // SAFETY: `file` was opened above and is used by nobody else.
    unsafe { libc::close(file) };
    usize::try_from(count).ok()
}

/// Sleeps while `word` holds `expected`. May return early.
pub(super) fn futex_wait(word: &AtomicU32, expected: u32) {
    let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let forever = ptr::null::<libc::timespec>();
    // SAFETY: `word` outlives the call; a null time-out is allowed.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, expected, forever) };
}

/// Wakes one sleeper of `futex_wait`.
pub(super) fn futex_wake_one(word: &AtomicU32) {
    let op = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: waking touches no memory.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, 1) };
}

/// Writes `text` to standard error and ends the process with Go's exit code for fatal errors.
pub(super) fn die(text: &[u8]) -> ! {
    // SAFETY: `text` is valid for reads of its length. The system call is made directly, as libc's
    // `write` is a cancellation point.
    unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, text.as_ptr(), text.len()) };
    // SAFETY: ending the process has no obligations.
    unsafe { libc::_exit(2) }
}

fn pointer(address: usize) -> *mut libc::c_void {
    ptr::with_exposed_provenance_mut(address)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
