//! Whether a machine still owns its processor.
//!
//! A machine that blocks in the kernel, declared or not, loses its processor to the monitor; one
//! that merely runs must never lose it while it is inside the runtime. Four states:
//!
//! ```text
//!            begin_call            take_from_call
//!   OWN  <-------------->  CALL  ------------------>  LOST
//!    ^ ^     end_call                                  ^ |
//!    | '---- withdraw ---- REQUESTED ----- take -------' |
//!    '---------------------- regained -------------------'
//! ```
//!
//! Parties: the machine, and one revoker at a time (the monitor; whoever stops the world).
//!
//! CALL names the processor. A machine may end its call, lose its processor, get another and begin
//! the next call between a revoker's look and its `take_from_call`, so the word alone says which
//! processor was taken; what the revoker saw before may be with somebody else by then.
//!
//! Steps of the machine on its way into the runtime: E1 `in_runtime = 1`, E2 compiler fence, E3 look
//! at the word. On its way out: L1 count the leave, L2 compiler fence, L3 `in_runtime = 0`.
//!
//! Steps of the revoker of a machine that seems to be asleep in the kernel: R1 `request`, R2 see it
//! asleep in /proc, R3 look at `in_runtime`, the count of leaves and the processor again; if all
//! are as they were, R4 `take`, else `withdraw`.
//!
//! Why a machine inside the runtime never loses its processor this way: R1 is a locked instruction
//! and R2 a look at a thread that the kernel has put to sleep since, which orders everything that
//! the thread did before on x86 (its going to sleep has a full barrier). So if E1 came before the
//! sleep, R3 sees it and the revoker withdraws; if E1 comes after, E3 comes after R1 and sees
//! REQUESTED or LOST. Elsewhere, and for a machine that runs, R2 needs `membarrier`.

use crate::sync::{AtomicU32, const_unless_modelled};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const OWN: u32 = 0;
const REQUESTED: u32 = 1;
const LOST: u32 = 2;
const CALL: u32 = 3;
/// The state is in the low bits; the rest is the processor of a call, 0 otherwise.
const STATE: u32 = 3;
const PROCESSOR_SHIFT: u32 = 2;

const fn in_call(processor: u32) -> u32 {
    CALL | processor << PROCESSOR_SHIFT
}

/// A machine's word.
#[derive(Debug)]
pub struct Ownership(AtomicU32);

impl Ownership {
    const_unless_modelled! {
        /// It owns its processor.
        pub fn new() -> Ownership {
            Ownership(AtomicU32::new(OWN))
        }
    }

    /// E3: nothing is asked for. Machine only.
    #[inline]
    #[must_use]
    pub fn is_undisturbed(&self) -> bool {
        // ORDERING: Relaxed; whatever else it is, a compare-exchange decides.
        self.0.load(Relaxed) == OWN
    }

    /// Whether the machine is in a declared call; a hint for others.
    #[inline]
    #[must_use]
    pub fn is_in_call(&self) -> bool {
        // ORDERING: Relaxed; `take_from_call` decides.
        self.0.load(Relaxed) & STATE == CALL
    }

    /// Whether the machine has lost its processor and not seen it yet; a hint for others.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.0.load(Relaxed) == LOST
    }

    /// Machine only, not in a call: keeps the processor against a request. False: it is lost.
    #[must_use]
    pub fn keep(&self) -> bool {
        // ORDERING: Acquire pairs with `take` (edge `processor-taken`): its next owner's word.
        match self.0.compare_exchange(REQUESTED, OWN, Acquire, Acquire) {
            Ok(_) | Err(OWN) => true,
            Err(_) => false,
        }
    }

    /// A declared call begins: from here on `processor`, the machine's own, may be taken at any
    /// moment. Machine only.
    #[inline]
    pub fn begin_call(&self, processor: u32) {
        // ORDERING: Release pairs with `take_from_call` (edge `processor-in-call`): what the
        // machine did to its processor is visible to the taker. The machine is inside the runtime,
        // so a request is withdrawn, not followed.
        while self.0.compare_exchange_weak(OWN, in_call(processor), Release, Relaxed).is_err() {
            let _ = self.0.compare_exchange(REQUESTED, OWN, Relaxed, Relaxed);
            std::hint::spin_loop();
        }
    }

    /// The call that began with `processor` is over. True: the processor is still there. Machine
    /// only.
    #[inline]
    #[must_use]
    pub fn end_call(&self, processor: u32) -> bool {
        // ORDERING: Acquire on failure pairs with `take_from_call`.
        self.0.compare_exchange(in_call(processor), OWN, Relaxed, Acquire).is_ok()
    }

    /// The machine that had lost its processor has one again. Machine only.
    pub fn regained(&self) {
        // ORDERING: Release: a revoker that sees OWN sees the new processor.
        self.0.store(OWN, Release);
    }

    /// R1. Revoker only. False: there is nothing to revoke.
    #[must_use]
    pub fn request(&self) -> bool {
        // ORDERING: AcqRel, and a locked instruction on x86: R1 of the module page.
        self.0.compare_exchange(OWN, REQUESTED, AcqRel, Relaxed).is_ok()
    }

    /// The machine is not what it seemed. Revoker only, after `request`.
    pub fn withdraw(&self) {
        // ORDERING: Relaxed; nothing was taken. A compare-exchange: the machine may have kept it.
        let _ = self.0.compare_exchange(REQUESTED, OWN, Relaxed, Relaxed);
    }

    /// R4. Revoker only, after `request`. True: the processor is the revoker's now.
    #[must_use]
    pub fn take(&self) -> bool {
        // ORDERING: AcqRel is edge `processor-taken`.
        self.0.compare_exchange(REQUESTED, LOST, AcqRel, Relaxed).is_ok()
    }

    /// Takes the processor of a machine in a declared call. Anyone. The processor is the caller's
    /// now; it need not be the one that the caller last saw the machine with.
    #[must_use]
    pub fn take_from_call(&self) -> Option<u32> {
        // ORDERING: Relaxed look. AcqRel is edge `processor-in-call`.
        let word = self.0.load(Relaxed);
        let is_taken =
            word & STATE == CALL && self.0.compare_exchange(word, LOST, AcqRel, Relaxed).is_ok();
        is_taken.then_some(word >> PROCESSOR_SHIFT)
    }
}

impl Default for Ownership {
    fn default() -> Ownership {
        Ownership::new()
    }
}
