//! A goroutine's own thread-local storage.
//!
//! Layer: `fiber`. A block is what FS points at: the control block that libc calls a thread, and
//! below it the thread-locals of every loaded module. Each goroutine runs on one of its own, so
//! that it is a thread as far as Rust and libc can tell, wherever it is resumed.
//!
//! Invariants
//! * I1. A block is loaded by at most one thread at a time.
//! * I2. A block is made, destroyed and its modules' list refreshed only outside the runtime:
//!   those take the loader's lock and allocate.
//! * I3. Between a goroutine's end and the next one on its block: `finish` (user code: the
//!   destructors), then `restore`.
//!
//! What libc takes a block for is a detached thread with a number that the kernel doesn't know.
//! Hence what does *not* work on one (it does with [`Kind::Threads`]):
//! * Mutexes that inherit priority: a contended one waits for ever. Robust ones tell of an owner
//!   that ended, but not of one whose process died.
//! * The kernel's view of a `pthread_t`: its clock, affinity, scheduling, name, signals from
//!   outside. `pthread_kill` to itself works.
//! * `pthread_exit`, which has no frame to return to, and cancellation.
//! * `dlerror` may still tell the last failure of the block's former user, and what libc keeps for
//!   `strerror` and name resolution is lost with a block that is destroyed.
//!
//! The fallback order when something is missing is [`Kind`]'s order.

#[cfg(target_env = "gnu")]
mod glibc;
#[cfg(not(target_env = "gnu"))]
mod unknown;

#[cfg(target_env = "gnu")]
use self::glibc as libc_here;
#[cfg(not(target_env = "gnu"))]
use self::unknown as libc_here;

use self::libc_here::Libc;
use crate::host;
use crate::signals::Blocked;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// Where a goroutine's thread-locals live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A block of its own, built from a template. The default.
    Template,
    /// A block of its own, left behind by a thread that ended. Slower to make, where libc's layout
    /// is not understood.
    DeadThread,
    /// A kernel thread of its own, for life. Where goroutines can't have blocks at all.
    Threads,
    /// Those of the thread that runs it at the moment. Not sound: only on the operator's word.
    Shared,
}

impl Kind {
    /// Whether a goroutine has a block of its own that is loaded at each switch.
    #[must_use]
    pub fn has_blocks(self) -> bool {
        matches!(self, Kind::Template | Kind::DeadThread)
    }
}

/// Why something better could not be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defect {
    /// It was not asked for.
    NotAsked,
    /// The program is built for another libc than glibc.
    UnknownLibc,
    /// libc does not have this symbol.
    MissingSymbol(&'static str),
    /// This field of libc's is not where, or not as, it is understood (with its offset).
    Layout(&'static str, usize),
    /// No memory (an error number).
    Memory(i32),
    /// A thread could not be created (an error number).
    ThreadCreation(i32),
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Defect::NotAsked => write!(f, "not asked for"),
            Defect::UnknownLibc => write!(f, "this libc is not glibc"),
            Defect::MissingSymbol(name) => write!(f, "libc has no {name}"),
            Defect::Layout(what, at) => write!(f, "{what} (offset {at}) is not understood"),
            Defect::Memory(errno) => write!(f, "no memory: {}", os_error(*errno)),
            Defect::ThreadCreation(errno) => write!(f, "no thread: {}", os_error(*errno)),
        }
    }
}

impl std::error::Error for Defect {}

fn os_error(errno: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}

/// A complete thread-local block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// What FS is while it is loaded.
    tcb: usize,
    /// Where the stack may begin, below the block's static area.
    stack_top: usize,
}

impl Block {
    /// What FS is while the block is loaded; its `pthread_t` as well.
    #[inline]
    #[must_use]
    pub fn tcb(self) -> usize {
        self.tcb
    }

    /// The first address above the stack that lies below the block, aligned to 64.
    #[inline]
    #[must_use]
    pub fn stack_top(self) -> usize {
        self.stack_top
    }
}

/// What was found and chosen, for `doctor`.
#[derive(Clone, Debug)]
pub struct Report {
    /// How goroutines' thread-locals are kept.
    pub kind: Kind,
    /// How FS is loaded.
    pub access: host::Access,
    /// Why not [`Kind::Template`], where it is not.
    pub defect: Option<Defect>,
    /// Whether machines are found through GS.
    pub through_gs: bool,
    /// Whether set*id finds machines that carry goroutines.
    pub setxid_wrapped: bool,
    /// Whether pthread keys' destructors run at a goroutine's end.
    pub key_destructors: bool,
    /// Whether ended blocks' malloc caches can be emptied.
    pub malloc_cache: bool,
    /// How many of the four things that most goroutines leave untouched (destructors, locale,
    /// character tables, the loader's error) are seen to be so without asking libc.
    pub untouched: usize,
    /// Bytes of a control block and of the static area that contains it.
    pub sizes: Option<(usize, usize)>,
    /// Whether libc registers areas for restartable sequences.
    pub rseq: bool,
    /// libc's symbols that blocks are made with, and whether they were found.
    pub symbols: Vec<(&'static str, bool)>,
}

/// Where the end of a goroutine looks at its block, from FS, a line each; 0 where there are fewer. As
/// many as glibc has: more would not be fetched.
static LINES_AT_END: [AtomicIsize; 5] = [const { AtomicIsize::new(0) }; 5];

/// Where the end of a goroutine looks at its block: distances from FS, to fetch the lines there ahead.
#[inline]
#[must_use]
pub fn lines_at_end() -> &'static [AtomicIsize] {
    &LINES_AT_END
}

static CHOSEN: OnceLock<(Kind, host::Access, Libc)> = OnceLock::new();

/// Decides once how thread-locals are kept: as asked, or the best that works here.
///
/// A later call returns the first one's answer.
pub fn init(wanted: Option<Kind>, access: Option<host::Access>) -> Kind {
    CHOSEN
        .get_or_init(|| {
            let access = host::init(libc_here::access(access));
            let libc = Libc::look(wanted != Some(Kind::DeadThread));
            for (line, found) in LINES_AT_END.iter().zip(lines_of(&libc.looks_at_end())) {
                // ORDERING: Relaxed; good for fetching only.
                line.store(found, Relaxed);
            }
            let best = match libc.template_defect() {
                None => Kind::Template,
                Some(_) if libc.can_have_blocks() => Kind::DeadThread,
                Some(_) => Kind::Threads,
            };
            let kind = match wanted {
                Some(Kind::Threads) => Kind::Threads,
                Some(Kind::Shared) => Kind::Shared,
                _ => best,
            };
            (kind, access, libc)
        })
        .0
}

/// The lines of these places, each once, but for that of FS itself.
fn lines_of(places: &[isize]) -> Vec<isize> {
    let mut lines: Vec<isize> = places.iter().map(|place| place & !63).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.retain(|line| *line != 0);
    lines
}

fn chosen() -> &'static (Kind, host::Access, Libc) {
    CHOSEN.get().unwrap_or_else(|| gosched_base::rt_abort!("tls: used before `init`"))
}

/// The kind that [`init`] chose.
#[must_use]
pub fn kind() -> Kind {
    chosen().0
}

/// How many bytes at the top of the memory for a block must be zero.
#[must_use]
pub fn block_bytes() -> usize {
    chosen().2.block_bytes().unwrap_or(0)
}

/// What was found and chosen.
#[must_use]
pub fn report() -> Report {
    let (kind, access, libc) = chosen();
    Report {
        kind: *kind,
        access: *access,
        defect: libc.template_defect().cloned(),
        through_gs: host::is_found_through_gs(),
        setxid_wrapped: libc.setxid_is_wrapped(),
        key_destructors: libc.has_key_destructors(),
        malloc_cache: libc.has_tcache(),
        untouched: libc.untouched(),
        sizes: libc.sizes(),
        rseq: libc.symbols().has_rseq(),
        symbols: libc.symbols().list(),
    }
}

/// Makes the next `count` calls of [`make`] cheaper. Not inside the runtime (I2).
pub fn expect(count: usize) {
    chosen().2.expect(count);
}

/// Makes a block at the top of `memory`. Not inside the runtime (I2).
///
/// # Safety
/// * `memory` is writable, the [`block_bytes`] at its top are zeroed, and it is the caller's until
///   [`destroy`] says so.
pub unsafe fn make(memory: Range<usize>, tid: i32) -> Result<Block, Defect> {
    // SAFETY: by the caller.
    unsafe { chosen().2.make(memory, tid) }
}

/// Does what libc does first on a new thread.
///
/// # Safety
/// * `block` is loaded, and was just made or restored.
#[inline]
pub unsafe fn begin(block: Block) {
    // SAFETY: by the caller.
    unsafe { chosen().2.begin(block) };
}

/// Runs the destructors of a block's thread-locals and pthread keys. User code.
///
/// # Safety
/// * `block` is loaded, and the goroutine on it has nothing left to do but this.
#[inline]
pub unsafe fn finish(block: Block) {
    // SAFETY: by the caller.
    unsafe { chosen().2.finish(block) };
}

/// Whether `block` can be used again after [`restore`].
///
/// # Safety
/// * [`finish`] was called on it.
#[inline]
#[must_use]
pub unsafe fn is_reusable(block: Block) -> bool {
    // SAFETY: by the caller.
    !unsafe { chosen().2.is_beyond_restore(block) }
}

/// Brings all thread-locals of a finished block back to their first values.
///
/// # Safety
/// * [`finish`] was called on it, and nothing touches its thread-locals meanwhile.
#[inline]
pub unsafe fn restore(block: Block) {
    let restore = || {
        // SAFETY: by the caller.
        unsafe { chosen().2.restore(block) };
    };
    // SAFETY: by the caller.
    unsafe { host::keeping_slot(block.tcb, restore) };
}

/// As [`restore`], for a block that is not reusable and that libc does not let go of. Not inside
/// the runtime (I2).
///
/// # Safety
/// * As for [`restore`].
pub unsafe fn scrub(block: Block) {
    // SAFETY: by the caller.
    unsafe { chosen().2.scrub(block) };
}

/// Returns when no walk of libc's through its list of threads is left that may have seen a block
/// destroyed before. False, at once, if that can't be arranged; a second is then enough in
/// practice. Not inside the runtime (I2).
#[must_use]
pub fn wait_for_walkers() -> bool {
    chosen().2.wait_for_walkers()
}

/// Frees what a finished block owns. True if its memory may be used otherwise after
/// [`wait_for_walkers`]; false if it must stay for ever. Not inside the runtime (I2).
///
/// # Safety
/// * [`finish`] was called on it, and it is not used again.
#[must_use]
pub unsafe fn destroy(block: Block) -> bool {
    // SAFETY: by the caller.
    unsafe { chosen().2.destroy(block) }
}

/// Runs `f` with the block at `tcb` loaded and all signals blocked.
///
/// # Safety
/// * `tcb` is a complete block that no thread has loaded.
/// * `f` uses no thread-local that was used before on this thread in this function's caller, and
///   does not unwind.
unsafe fn on_block(tcb: usize, f: impl FnOnce()) {
    let host = host::current();
    let own = host::current_block();
    // A handler must not find another's block loaded.
    let _blocked = Blocked::all();
    // SAFETY: by the caller.
    unsafe { host::load_block(host, tcb) };
    f();
    // SAFETY: what was loaded before.
    unsafe { host::load_block(host, own) };
}

/// Memory that is never given back.
fn map_for_ever(bytes: usize) -> Result<*mut u8, Defect> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new private mapping.
    let p = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if p == libc::MAP_FAILED {
        return Err(Defect::Memory(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)));
    }
    Ok(p.cast())
}

#[cfg(test)]
mod tests {
    use super::{Kind, LINES_AT_END, init, lines_of};
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn lines_are_told_once_and_without_that_of_fs() {
        assert_eq!(lines_of(&[-264, -320, -256, 736, 1552, 2304]), [-320, -256, 704, 1536, 2304]);
        assert_eq!(lines_of(&[0, 63, -1, -64]), [-64]);
        assert!(lines_of(&[]).is_empty());
    }

    #[test]
    fn what_an_end_looks_at_is_known_where_libc_is() {
        if init(None, None) != Kind::Template {
            return println!("SKIPPED: this libc's blocks are not understood");
        }
        assert!(LINES_AT_END.iter().any(|line| line.load(Relaxed) > 0), "the control block's");
        assert!(LINES_AT_END.iter().any(|line| line.load(Relaxed) < 0), "libc's thread-locals");
    }
}
