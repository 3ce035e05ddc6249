//! What `turn` stands on; in its model, loom's.

pub(crate) use gosched_base::Lock;
pub(crate) use gosched_sched::{
    Cancellation, Critical, WaitReason, Waiter, block, block_until, block_until_unless,
};
pub(crate) use std::cell::Cell;

/// `const fn`: loom's locks can't be made in constants, so its model writes this otherwise.
macro_rules! const_unless_modelled {
    ($vis:vis fn $name:ident() -> $ret:ty $body:block) => {
        $vis const fn $name() -> $ret $body
    };
}
pub(crate) use const_unless_modelled;
