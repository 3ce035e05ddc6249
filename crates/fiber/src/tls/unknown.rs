//! A libc of which nothing is known but POSIX: musl, for one.
//!
//! It makes no blocks, so that each goroutine gets a thread of its own, or shares its machine's
//! thread-locals on the operator's word. The kernel copies GS to threads that a goroutine makes, and
//! nothing hides the machine from them here, as `pthread_create` does where its calls come by the
//! runtime. So machines are found through a thread-local, which new threads don't have.

use super::{Block, Defect};
use crate::host::Access;
use std::ops::Range;

/// How registers are to be accessed, whatever is asked for.
pub(super) fn access(_: Option<Access>) -> Option<Access> {
    Some(Access::Slot)
}

/// What is known of this process's libc: nothing.
#[derive(Debug)]
pub(super) struct Libc;

/// No symbols of libc's are looked up.
#[derive(Debug)]
pub(super) struct Symbols;

impl Symbols {
    pub(super) fn has_rseq(&self) -> bool {
        false
    }

    pub(super) fn list(&self) -> Vec<(&'static str, bool)> {
        Vec::new()
    }
}

impl Libc {
    pub(super) fn look(_use_template: bool) -> Libc {
        Libc
    }

    pub(super) fn symbols(&self) -> &Symbols {
        &Symbols
    }

    pub(super) fn can_have_blocks(&self) -> bool {
        false
    }

    pub(super) fn template_defect(&self) -> Option<&Defect> {
        Some(&Defect::UnknownLibc)
    }

    /// set*id reaches threads as they are.
    pub(super) fn setxid_is_wrapped(&self) -> bool {
        true
    }

    /// By libc, when the goroutine's thread ends.
    pub(super) fn has_key_destructors(&self) -> bool {
        true
    }

    /// As above.
    pub(super) fn has_tcache(&self) -> bool {
        true
    }

    pub(super) fn sizes(&self) -> Option<(usize, usize)> {
        None
    }

    pub(super) fn block_bytes(&self) -> Option<usize> {
        None
    }

    pub(super) fn expect(&self, _: usize) {}

    /// # Safety
    /// * None; there are no blocks here.
    pub(super) unsafe fn make(&self, _: Range<usize>, _: i32) -> Result<Block, Defect> {
        Err(Defect::UnknownLibc)
    }

    pub(super) fn looks_at_end(&self) -> Vec<isize> {
        Vec::new()
    }

    pub(super) fn untouched(&self) -> usize {
        0
    }

    /// # Safety
    /// * As for `make`.
    pub(super) unsafe fn begin(&self, _: Block) {}

    /// # Safety
    /// * As for `make`.
    pub(super) unsafe fn finish(&self, _: Block) {}

    pub(super) fn wait_for_walkers(&self) -> bool {
        true
    }

    /// # Safety
    /// * As for `make`.
    pub(super) unsafe fn is_beyond_restore(&self, _: Block) -> bool {
        false
    }

    /// # Safety
    /// * As for `make`.
    pub(super) unsafe fn restore(&self, _: Block) {}

    /// # Safety
    /// * As for `make`.
    pub(super) unsafe fn scrub(&self, _: Block) {}

    /// # Safety
    /// * As for `make`.
    pub(super) unsafe fn destroy(&self, _: Block) -> bool {
        true
    }
}
