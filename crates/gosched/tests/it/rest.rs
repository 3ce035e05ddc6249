//! Processors rest where two machines share a CPU, and for no longer than does no harm.

use crate::child::Child;

fn child(settings: &str) -> Child {
    Child::new("sched_rest", &[]).procs(2).env("GOSCHED", settings)
}

/// Without preemption nobody else can run beside one that computes: only the end of the rest helps. And
/// what is woken while the others are in blocking calls is for them, not for who rests.
#[test]
fn nobody_waits_for_a_processor_at_rest() {
    for settings in ["asyncpreemptoff=1", "asyncpreemptoff=1,tls=shared"] {
        child(settings).run().figures().expect_some("rests");
    }
}

#[test]
fn nobody_rests_where_it_is_switched_off() {
    child("rest=0").run().figures().expect_at_most("rests", 0);
}
