//! Nobody looks on.

/// What a context keeps for a sanitizer: nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shadow;

impl Shadow {
    pub(crate) const EMPTY: Shadow = Shadow;

    #[inline(always)]
    pub(crate) fn begin(&mut self, _limit: usize, _top: usize) {}

    #[inline(always)]
    pub(crate) fn end(&mut self) {}

    #[inline(always)]
    pub(crate) fn ended(&mut self) {}
}

/// The memory from `_limit` to `_top` is no idle stack any more.
#[inline(always)]
pub(crate) fn forget(_limit: usize, _top: usize) {}

/// # Safety
/// * None here.
#[inline(always)]
pub(crate) unsafe fn leave(_from: *mut Shadow, _to: *const Shadow) {}

/// # Safety
/// * None here.
#[inline(always)]
pub(crate) unsafe fn arrive(_at: *mut Shadow) {}
