//! The monitor's thread.
//!
//! It must not have to wait for a lock of the loader's: a goroutine may hold that for as long as it
//! likes, in a callback that waits, and the monitor is who gets others on then; one that came to its
//! CPU too late would never begin. So it is made past std, as all threads of the runtime's, and with
//! libc's own size of stacks, since to ask for the least one takes the lock. (Machines and the starter
//! may wait for it; the monitor ends somebody's call if none of them comes, see `interrupt`.)

use gosched_fiber::thread;
use std::io::Result;

/// Starts a thread that runs the monitor and never ends.
pub(super) fn start() -> Result<()> {
    static WATCH: fn() = || {
        thread::set_name(c"gosched-monitor");
        super::watch();
    };
    thread::start(&WATCH, None)
}
