//! Linux system calls without libc in between.
//!
//! libc's wrappers write `errno`, which is a thread-local of whatever control block is loaded, and
//! its `syscall` symbol may be interposed. The runtime uses neither on its own account.

#[cfg(miri)]
mod interpreted;
#[cfg(miri)]
pub use interpreted::syscall;

#[cfg(not(miri))]
use std::arch::asm;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// An error number of the kernel, as in `errno(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// Makes system call `number` with up to six arguments.
///
/// # Safety
/// * The call, with these arguments, must not break memory that Rust relies on.
#[cfg(not(miri))]
#[inline]
pub unsafe fn syscall(number: i64, args: [usize; 6]) -> Result<usize, Errno> {
    let result: isize;
    // SAFETY: the kernel's calling convention clobbers nothing but the result; the rest as below.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] as isize => result,
            in("x1") args[1],
            in("x2") args[2],
            in("x3") args[3],
            in("x4") args[4],
            in("x5") args[5],
            options(nostack),
        );
    }
    // SAFETY: the kernel's calling convention clobbers rcx and r11 only; what the call does to
    // memory is the caller's promise.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    if (-4095..0).contains(&result) { Err(Errno(-result as i32)) } else { Ok(result as usize) }
}

/// Sleeps while `word` holds `expected`, at most for `timeout`. Wakes may be spurious.
///
/// Returns `Err(ETIMEDOUT)` after the time-out, `Err(EAGAIN)` when the word differs.
#[inline]
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Result<(), Errno> {
    let spec = timeout.map(timespec);
    let spec = spec.as_ref().map_or(0, |t| t as *const libc::timespec as usize);
    let op = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let args = [word.as_ptr() as usize, op, expected as usize, spec, 0, 0];
    // SAFETY: the kernel only reads the word and the time-out, both alive during the call.
    unsafe { syscall(libc::SYS_futex, args) }.map(drop)
}

/// As [`futex_wait`], until the monotonic clock reads `deadline_ns`.
#[inline]
pub fn futex_wait_until(word: &AtomicU32, expected: u32, deadline_ns: u64) -> Result<(), Errno> {
    let spec = timespec(Duration::from_nanos(deadline_ns));
    let op = (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG) as usize;
    let args = [
        word.as_ptr() as usize,
        op,
        expected as usize,
        &spec as *const libc::timespec as usize,
        0,
        u32::MAX as usize,
    ];
    // SAFETY: as in `futex_wait`.
    unsafe { syscall(libc::SYS_futex, args) }.map(drop)
}

/// Wakes up to `count` threads that sleep on `word`.
#[inline]
pub fn futex_wake(word: *const AtomicU32, count: u32) {
    let op = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    let args = [word as usize, op, count as usize, 0, 0, 0];
    // SAFETY: a wake only uses the address as a key; it reads nothing through it.
    let _ = unsafe { syscall(libc::SYS_futex, args) };
}

/// The kernel's number of the calling thread.
#[must_use]
pub fn gettid() -> i32 {
    // SAFETY: no arguments, no memory.
    unsafe { syscall(libc::SYS_gettid, [0; 6]) }.map_or(0, |tid| tid as i32)
}

/// The kernel's number of this process.
#[must_use]
pub fn getpid() -> i32 {
    // SAFETY: no arguments, no memory.
    unsafe { syscall(libc::SYS_getpid, [0; 6]) }.map_or(0, |pid| pid as i32)
}

/// Whether the kernel still has thread `tid`, which was one of this process.
///
/// Where a filter keeps signals from being sent, a number that another process has got since counts
/// as well.
#[must_use]
pub fn is_thread(tid: i32) -> bool {
    // SAFETY: no memory is passed; signal 0 is none.
    match unsafe { syscall(libc::SYS_tgkill, [getpid() as usize, tid as usize, 0, 0, 0, 0]) } {
        Ok(_) => true,
        Err(Errno(libc::ESRCH)) => false,
        // SAFETY: no memory is passed.
        Err(_) => unsafe { syscall(libc::SYS_getpgid, [tid as usize, 0, 0, 0, 0, 0]) }.is_ok(),
    }
}

/// Sends `signal` to thread `tid` of this process, with `word` for its handler (see
/// [`queued_word`]).
pub fn tgsigqueue(tid: i32, signal: i32, word: usize) -> Result<(), Errno> {
    let info = Queued {
        signal,
        error: 0,
        code: libc::SI_QUEUE,
        padding: 0,
        pid: getpid(),
        uid: 0,
        word,
        rest: [0; 12],
    };
    let (tid, signal) = (tid as usize, signal as usize);
    let args = [getpid() as usize, tid, signal, &raw const info as usize, 0, 0];
    // SAFETY: the kernel reads 128 bytes, which are ours.
    unsafe { syscall(libc::SYS_rt_tgsigqueueinfo, args) }.map(drop)
}

/// The word that was sent with a signal; `None` if it was sent in any other way.
///
/// # Safety
/// * `info` is the second argument of a signal handler that runs.
#[must_use]
pub unsafe fn queued_word(info: *const libc::siginfo_t) -> Option<usize> {
    // SAFETY: the kernel's layout for signals that were sent with a word; the first three numbers
    // are there in all.
    let info = unsafe { &*info.cast::<Queued>() };
    (info.code == libc::SI_QUEUE).then_some(info.word)
}

/// `siginfo_t` of a signal sent with a word, on 64-bit machines.
#[repr(C)]
struct Queued {
    signal: i32,
    error: i32,
    code: i32,
    padding: i32,
    pid: i32,
    uid: u32,
    word: usize,
    rest: [usize; 12],
}

const _: () = assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>());

/// Ends the process at once: no at-exit functions, no destructors.
pub fn exit_group(code: i32) -> ! {
    loop {
        // SAFETY: does not return.
        let _ = unsafe { syscall(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Writes all of `bytes` to descriptor `fd`; gives up on an error.
pub fn write_all(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let args = [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
        // SAFETY: the kernel reads `len` bytes of a live slice.
        match unsafe { syscall(libc::SYS_write, args) } {
            Ok(0) => return,
            Ok(written) => bytes = &bytes[written..],
            Err(Errno(libc::EINTR | libc::EAGAIN)) => {}
            Err(_) => return,
        }
    }
}

/// Reads from an open file at `offset` without moving its position; how many bytes.
pub fn read_at(fd: i32, bytes: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let args = [fd as usize, bytes.as_mut_ptr() as usize, bytes.len(), offset as usize, 0, 0];
    loop {
        // SAFETY: the kernel writes at most `len` bytes of a live slice.
        match unsafe { syscall(libc::SYS_pread64, args) } {
            Err(Errno(libc::EINTR)) => {}
            done => return done,
        }
    }
}

/// The CPUs that the calling thread may run on, as bits of `words`; how many words were filled.
/// Fails with `EINVAL` if the kernel has more CPUs than fit.
pub fn affinity(words: &mut [u64]) -> Result<usize, Errno> {
    let args = [0, size_of_val(words), words.as_mut_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel writes at most as many bytes as are stated.
    let bytes = unsafe { syscall(libc::SYS_sched_getaffinity, args) }?;
    Ok(bytes.div_ceil(size_of::<u64>()))
}

/// Lets the calling thread run on the CPUs that are bits of `words` only.
pub fn set_affinity(words: &[u64]) -> Result<(), Errno> {
    let args = [0, size_of_val(words), words.as_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel reads as many bytes as are stated.
    unsafe { syscall(libc::SYS_sched_setaffinity, args) }.map(drop)
}

/// Fresh zeroed memory, aligned to pages, for the process's life. Without malloc: callable inside
/// the runtime. `None`: there is none.
#[must_use]
pub fn map_zeroed(bytes: usize) -> Option<NonNull<u8>> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new private mapping.
    let start = unsafe { syscall(libc::SYS_mmap, [0, bytes, protection, flags, usize::MAX, 0]) };
    NonNull::new(start.ok()? as *mut u8)
}

/// Nanoseconds of the monotonic clock. Through the vDSO: no system call, no thread-locals.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec, which is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Lets other threads have this CPU, if any waits for it.
pub fn yield_cpu() {
    // SAFETY: no memory is passed. It never fails.
    let _ = unsafe { syscall(libc::SYS_sched_yield, [0; 6]) };
}

fn timespec(d: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: d.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: i64::from(d.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests;
