//! Who a fault's report is about.

use crate::current::current;
use crate::fatal::{self, Request};
use gosched_fiber::arch::Context;
use gosched_fiber::fault::{self, Hooks, Identity};
use gosched_fiber::stack::SlotInfo;

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
    let mut here = Context::empty();
    // The handler's own frames come first, and are left out as the runtime's.
    here.note_here();
    let [pc, sp, bp, _] = here.registers();
    fatal::write(Request { cause: current(), at: Some([pc, sp, bp]), is_headed: true });
}
