//! Faults: a stack overflow ends in a clear report; everything else goes where it went before.
//!
//! Layer: `fiber`, beside `stack`, which tells whether an address lies in a guard.
//!
//! A handler for SIGSEGV and SIGBUS decides once:
//!
//! 1. The fault address lies in the guard of a slot, and the stack pointer in or just below that
//!    slot: an overflow. Report it in Go's words on standard error and end the process with code 2.
//! 2. Anything else: do what the kernel would have done had this module not been there.
//!
//! Invariants
//! * I1. Nothing here allocates, takes a lock, formats through `std::fmt` or calls libc's stdio:
//!   the code that overflowed may hold any lock there is.
//! * I2. `si_code` does not tell guards apart: markers report MAPERR, `mprotect` reports ACCERR.
//!   Only its sign is looked at, since the address of a signal sent by a process means nothing.
//!
//! One difference remains for the handler that was there before: if it was installed without
//! SA_ONSTACK it now runs on the alternate stack of threads that have one. Calling it on the stack
//! that faulted would leave the alternate stack free for the next signal, which would overwrite
//! the context the handler reads.

mod altstack;
mod handler;
mod previous;
mod report;
mod writer;

pub use self::altstack::{AlternateStack, SignalStack, alternate_stack_install};
pub use self::handler::install;
pub use self::report::{Hooks, Identity, set_hooks};

#[cfg(test)]
mod tests;
