//! Cache lines that the next goroutines will need, fetched while this one runs.
//!
//! With many goroutines each is found cold: its descriptor, the top of its stack, its thread-local
//! block. All three are known one round ahead.

use crate::goroutine::GRef;
use gosched_runq::Owner;

/// Fetches what the goroutines at the ring's head will touch first.
#[inline(always)]
pub(crate) fn up(queue: &Owner<'_, GRef>) {
    if let Some(soon) = queue.peek(2) {
        soon.prefetch_descriptor();
        if let Some(next) = queue.peek(1) {
            next.prefetch_context();
        }
    }
}
