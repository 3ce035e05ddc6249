//! Who a fault's report is about.

use crate::current::current;
use gosched_fiber::fault::{self, Hooks, Identity};
use gosched_fiber::stack::SlotInfo;
use std::fmt::Write;

/// Tells the fault handler how to name the goroutine that overflowed its stack.
pub(crate) fn install() {
    static HOOKS: Hooks = Hooks { identity, dump };
    fault::set_hooks(&HOOKS);
}

/// In a signal handler, on the faulting thread.
fn identity(_: &SlotInfo) -> Option<Identity> {
    let g = current()?;
    let name = g.task.get().and_then(|task| {
        // SAFETY: the running goroutine's own task; the process ends in this handler.
        unsafe { task.as_ref() }.name.as_deref()
    });
    // SAFETY: as above: nothing drops the name any more.
    let name = name.map(|n| unsafe { std::mem::transmute::<&[u8], &'static [u8]>(n.as_bytes()) });
    Some(Identity { id: g.id(), name })
}

/// What follows the line that names the goroutine: the rest of its paragraph, and the others'.
fn dump(_: &SlotInfo) {
    let mut out = gosched_base::Stderr;
    let running = current();
    if let Some(g) = running {
        let _ = crate::dump::write_origin(&mut out, g);
    }
    let _ = writeln!(out);
    if crate::dump::shows_others() {
        let _ = crate::dump::write_others(&mut out, running);
    }
}
