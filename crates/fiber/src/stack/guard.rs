//! Guards: what makes an access below a stack fail, and the count of mappings it costs.
//!
//! | kind      | needs          | costs                         | catches                       |
//! | --------- | -------------- | ----------------------------- | ----------------------------- |
//! | `Marker`  | Linux 6.13     | nothing                       | every access, at once         |
//! | `Protect` | nothing        | two mappings a stack          | every access, at once         |
//! | `Canary`  | to be asked for | a page a stack               | writes, when the stack ends   |
//!
//! Markers cannot be put into locked memory (`mlockall`). Such slots fall back to `Protect` one by
//! one; see `arena` for what keeps fresh arenas unlocked.

use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::error::StackError;
use super::sys::{self, Access, PAGE};

/// How an overflow is caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// `MADV_GUARD_INSTALL`: page table entries that fault, no mapping of their own.
    Marker,
    /// `mprotect(PROT_NONE)`: splits the arena, so the number of stacks is bounded by
    /// `vm.max_map_count`.
    Protect,
    /// Nothing stops an overflow. Known words below the limit are checked when the stack is given
    /// back; a changed one ends the process.
    Canary,
}

/// Mappings that one protected guard adds: itself, and what it cuts off.
const MAPS_PER_GUARD: usize = 2;

/// The kernel's default, for when `/proc` cannot be read.
const MAX_MAP_COUNT_DEFAULT: usize = 65_530;

const CANARY: u64 = 0xbad5_7ac6_0e3f_10d5;
const CANARY_WORDS: usize = 8;

impl GuardKind {
    /// The best kind that this kernel has.
    pub fn detect() -> Self {
        static DETECTED: OnceLock<GuardKind> = OnceLock::new();
        *DETECTED.get_or_init(|| if markers_work() { Self::Marker } else { Self::Protect })
    }
}

/// Tries a marker on a page of its own. Locked memory refuses markers on every kernel, so the page
/// is unlocked first.
fn markers_work() -> bool {
    let Ok(at) = sys::map(PAGE, Access::None) else { return false };
    let page = at..at + PAGE;
    sys::unlock_pages(page.clone());
    // SAFETY: nobody else knows the page.
    let works = unsafe { sys::install_markers(page.clone()) }.is_ok();
    // SAFETY: mapped above, known to nobody else.
    unsafe { sys::unmap(page) };
    works
}

/// Arms the guard of a slot that has none.
///
/// # Safety
/// * `guard` is the guard range of a slot that the caller owns.
pub(super) unsafe fn arm(kind: GuardKind, guard: Range<usize>, budget: &MapBudget) -> Armed {
    match kind {
        // SAFETY: owned - the caller's only obligation.
        GuardKind::Marker => match unsafe { sys::install_markers(guard.clone()) } {
            // The memory was locked after the arena was made.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                // SAFETY: owned - the caller's only obligation.
                unsafe { protect(guard, budget) }
            }
            other => other.map_err(refused),
        },
        // SAFETY: owned - the caller's only obligation.
        GuardKind::Protect => unsafe { protect(guard, budget) },
        GuardKind::Canary => {
            // SAFETY: owned - the caller's only obligation.
            unsafe { write_canary(guard.end) };
            Ok(())
        }
    }
}

type Armed = Result<(), StackError>;

/// # Safety
/// * `guard` is the guard range of a slot that the caller owns.
unsafe fn protect(guard: Range<usize>, budget: &MapBudget) -> Armed {
    budget.acquire()?;
    // SAFETY: owned - the caller's only obligation.
    let done = unsafe { sys::protect(guard, Access::None) };
    done.map_err(|error| {
        budget.release();
        // The kernel's answer to one mapping too many.
        if error.raw_os_error() == Some(libc::ENOMEM) { budget.error() } else { refused(error) }
    })
}

/// # Safety
/// * The bytes below `limit` are the guard of a slot that the caller owns, and writable.
pub(super) unsafe fn write_canary(limit: usize) {
    for word in canary_words(limit) {
        // SAFETY: writable and owned - the caller's obligation; aligned, as `limit` is a page's.
        unsafe { word.write_volatile(CANARY) };
    }
}

/// Whether nobody wrote just below `limit`.
///
/// # Safety
/// * `write_canary` was called for `limit`, and the caller owns the slot.
pub(super) unsafe fn canary_intact(limit: usize) -> bool {
    canary_words(limit).all(|word| {
        // SAFETY: readable and owned - the caller's obligation.
        let found = unsafe { word.read_volatile() };
        found == CANARY
    })
}

fn canary_words(limit: usize) -> impl Iterator<Item = *mut u64> {
    (1..=CANARY_WORDS).map(move |i| ptr::with_exposed_provenance_mut(limit - i * size_of::<u64>()))
}

pub(super) fn refused(error: io::Error) -> StackError {
    StackError::Refused { errno: error.raw_os_error().unwrap_or(0) }
}

/// How many mappings our guards may add.
pub(super) struct MapBudget {
    limit: usize,
    /// Kept free for everybody else.
    headroom: usize,
    /// Written by: any thread that arms a protected guard. Read by: the same.
    used: AtomicUsize,
}

impl MapBudget {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, headroom: limit / 16, used: AtomicUsize::new(0) }
    }

    /// The budget of this process. Reads the limit once.
    pub(super) fn of_process() -> &'static Self {
        static BUDGET: OnceLock<MapBudget> = OnceLock::new();
        BUDGET.get_or_init(|| Self::new(max_map_count().unwrap_or(MAX_MAP_COUNT_DEFAULT)))
    }

    pub(super) fn used(&self) -> usize {
        // ORDERING: relaxed, a figure for people.
        self.used.load(Relaxed)
    }

    fn acquire(&self) -> Armed {
        // ORDERING: relaxed, only the sum matters.
        let before = self.used.fetch_add(MAPS_PER_GUARD, Relaxed);
        if before + MAPS_PER_GUARD + self.headroom <= self.limit {
            return Ok(());
        }
        self.release();
        Err(self.error())
    }

    fn release(&self) {
        // ORDERING: relaxed, only the sum matters.
        self.used.fetch_sub(MAPS_PER_GUARD, Relaxed);
    }

    fn error(&self) -> StackError {
        StackError::MapLimit { limit: self.limit, needed: 2 * self.limit }
    }
}

fn max_map_count() -> Option<usize> {
    let mut text = [0; 32];
    let count = sys::read_file(c"/proc/sys/vm/max_map_count", &mut text)?;
    parse_decimal(&text[..count])
}

/// Reads digits up to the first other byte.
pub(super) fn parse_decimal(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    text[..digits]
        .iter()
        .try_fold(0_usize, |sum, digit| sum.checked_mul(10)?.checked_add(usize::from(digit - b'0')))
}
