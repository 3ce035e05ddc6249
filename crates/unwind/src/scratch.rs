//! Memory for walks, made ahead: rules that were found before, and room to evaluate them.
//!
//! Whoever walks takes one that is free; a signal handler may find those in use that the code it has
//! interrupted uses. Nobody waits for one.

use crate::memory::Window;
use crate::places::{Places, Taken};
use framehop::MustNotAllocateDuringUnwind;
use framehop::x86_64::CacheX86_64;
use gosched_fiber::stack::{self, Class, Stack};

/// Most walks at the same time that need no memory.
const PLACES: usize = 64;

/// What a walk needs besides the stack.
pub(crate) struct Scratch {
    pub(crate) cache: CacheX86_64<MustNotAllocateDuringUnwind>,
    pub(crate) window: Window,
    /// For who has little of its own.
    pub(crate) stack: Option<Stack>,
}

/// What a walk needs, and some more.
const STACK_BYTES: usize = 64 << 10;

static POOL: Places<Scratch, PLACES> = Places::new();

impl Scratch {
    fn new() -> Box<Scratch> {
        let class = Class::for_bytes(STACK_BYTES);
        let stack = class.and_then(|class| stack::alloc(class).ok());
        Box::new(Scratch { cache: CacheX86_64::new_in(), window: Window::empty(), stack })
    }
}

/// Makes room for `walks` walks at the same time. Allocates; not in handlers.
pub fn reserve(walks: usize) {
    POOL.fill(walks, Scratch::new);
}

/// One that is free. Tried only, never waited for.
pub(crate) fn take() -> Option<Taken<'static, Scratch>> {
    POOL.take()
}
