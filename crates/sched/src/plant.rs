//! Faults planted in the runtime, to show that the tests which look for such faults see them.
//!
//! An allocation at a place inside the runtime, or a wake that is forgotten where a goroutine becomes
//! runnable. Only with the feature `plant`, which nothing but those tests' programs ask for.

/// Where an allocation can be planted.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Place {
    Spawn = 1,
    Exit,
    Park,
    Ready,
    Timer,
    Steal,
}

/// The wakes that can be forgotten.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Wake {
    /// For a new goroutine.
    Spawn = 101,
    /// For one that was woken.
    Ready,
    /// For one that gets its turn when another has ended.
    InTurn,
    /// For one that gives way in its ring.
    Yield,
    /// For one that gives way to all.
    Gosched,
    /// For one that makes room for a moment.
    Front,
    /// For one that did not have to wait after all.
    Commit,
    /// For those whose timers are due.
    Timers,
    /// For what plain threads have made runnable, in the global queue now.
    Injected,
    /// For what was urgent on a processor, in its ring now.
    Urgent,
    /// The poller's bell, for what a plain thread makes runnable.
    Bell,
    /// For what a share of the global queue brought into a ring.
    Share,
    /// By the last searcher, which has found something.
    Found,
    /// For one that can't be switched to directly.
    PutBack,
}

#[cfg(not(feature = "plant"))]
mod planted {
    use super::{Place, Wake};

    #[inline(always)]
    pub(crate) fn here(_: Place) {}

    #[inline(always)]
    pub(crate) fn forgets(_: Wake) -> bool {
        false
    }

    pub(crate) fn choose() {}
}

pub(crate) use planted::{choose, forgets, here};

#[cfg(feature = "plant")]
mod planted {
    use super::{Place, Wake};
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    static CHOSEN: AtomicU8 = AtomicU8::new(0);

    /// Allocates, if this is the place that was chosen.
    pub(crate) fn here(place: Place) {
        // ORDERING: Relaxed; set before the runtime starts.
        if CHOSEN.load(Relaxed) == place as u8 {
            drop(std::hint::black_box(Box::new(0_u8)));
        }
    }

    /// Whether this wake is the one to be forgotten.
    pub(crate) fn forgets(wake: Wake) -> bool {
        // ORDERING: Relaxed; as above.
        CHOSEN.load(Relaxed) == wake as u8
    }

    /// Reads the fault from `GOSCHED_TEST_PLANT`.
    pub(crate) fn choose() {
        let Ok(name) = std::env::var("GOSCHED_TEST_PLANT") else { return };
        let Some((_, fault)) = FAULTS.iter().find(|(known, _)| *known == name) else {
            panic!("GOSCHED_TEST_PLANT={name}: there is no such fault");
        };
        // ORDERING: Relaxed; the runtime has not started.
        CHOSEN.store(*fault, Relaxed);
    }

    const FAULTS: &[(&str, u8)] = &[
        ("spawn", Place::Spawn as u8),
        ("exit", Place::Exit as u8),
        ("park", Place::Park as u8),
        ("ready", Place::Ready as u8),
        ("timer", Place::Timer as u8),
        ("steal", Place::Steal as u8),
        ("no-wake-spawn", Wake::Spawn as u8),
        ("no-wake-ready", Wake::Ready as u8),
        ("no-wake-in-turn", Wake::InTurn as u8),
        ("no-wake-yield", Wake::Yield as u8),
        ("no-wake-gosched", Wake::Gosched as u8),
        ("no-wake-front", Wake::Front as u8),
        ("no-wake-commit", Wake::Commit as u8),
        ("no-wake-timers", Wake::Timers as u8),
        ("no-wake-injected", Wake::Injected as u8),
        ("no-wake-urgent", Wake::Urgent as u8),
        ("no-wake-bell", Wake::Bell as u8),
        ("no-wake-share", Wake::Share as u8),
        ("no-wake-found", Wake::Found as u8),
        ("no-wake-put-back", Wake::PutBack as u8),
    ];
}
