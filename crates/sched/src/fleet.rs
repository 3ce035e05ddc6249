//! How many machines there are: orders, the spare one, the limit, and who ends.
//!
//! A processor without a machine goes to a sleeping one. Where there is none it becomes an *order*,
//! and whoever comes first takes it: a machine that comes back from a call, one that is about to
//! sleep, or a new one. Creating a thread allocates and takes the loader's lock, so that only the
//! starter thread does it, never code inside the runtime; and it keeps a machine or a few asleep
//! in advance, so that a processor rarely waits for a thread to be made.
//!
//! Invariants
//! * I1. A processor in an order counts among the searchers; whoever takes it searches with it.
//! * I2. No order stays while a machine sleeps: who orders looks for sleepers before and wakes the
//!   starter after, who goes to sleep looks for orders after; both under locks, so one sees the
//!   other.
//! * I3. `live` counts machines that have a thread or are about to have one; at most the limit,
//!   except that a main thread is adopted whatever it is.
//!
//! At the limit, and when the system refuses a thread, orders wait: machines in calls come back.
//! Only if every machine sleeps with its locked goroutine can nothing help, and the process ends
//! with Go's words. (Go ends it as soon as it needs one thread too many.)
//!
//! Rejected: ending the process at the limit, since blocked calls do return; handing the order to a
//! new thread by name, since a machine that returns earlier would have to wait.

use crate::machine::{self, Machine};
use crate::processor::Processor;
use crate::scheduler::{MACHINES_MAX, PROCS_MAX, SCHEDULER};
use crate::{background, fatal, frames, gomaxprocs, idle};
use gosched_base::{Lock, Parker, Stderr, os};
use std::fmt::Write;
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
    fence,
};
use std::time::Duration;

/// Go's number.
pub(crate) const THREADS_MAX_DEFAULT: u32 = 10_000;
/// Most machines that are kept ready; fewer than those that sleep without end, see `idle`.
const SPARES_MAX: u32 = 4;
/// A machine's own stack; goroutines have theirs.
const STACK_BYTES: usize = 256 << 10;
/// After the system has refused a thread, the next attempt is made after that long if nothing has
/// happened before; then twice that, and so on.
const RETRY_MIN: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(1);

struct Fleet {
    /// First in, first out, from `first` on: a processor that waited while others come and go again
    /// and again would keep its timers waiting.
    orders: [Option<&'static Processor>; PROCS_MAX],
    first: usize,
    count: usize,
    live: u32,
    /// The system has refused the last thread that was asked for.
    is_refused: bool,
    /// Records of machines that have ended.
    ended: *const Machine,
}

// SAFETY: machines are never freed; the pointer is used under the lock.
unsafe impl Send for Fleet {}

static FLEET: Lock<Fleet> = Lock::new(Fleet {
    orders: [None; PROCS_MAX],
    first: 0,
    count: 0,
    live: 0,
    is_refused: false,
    ended: std::ptr::null(),
});
/// How many orders there are. Written under the lock.
static ORDERED: AtomicU32 = AtomicU32::new(0);
/// Machines whose thread has not come to look for its order yet.
static BIRTHS: AtomicU32 = AtomicU32::new(0);
/// Machines that sleep until their locked goroutine has its turn.
static LOCKED_ASLEEP: AtomicU32 = AtomicU32::new(0);
/// Whether no machine can be made at the moment. Written under the lock.
static EXHAUSTED: AtomicBool = AtomicBool::new(false);
static WANTS_SPARE: AtomicBool = AtomicBool::new(false);
/// How many sleeping machines are kept ready: one, more once that was not enough.
static SPARES: AtomicU32 = AtomicU32::new(1);
/// How many machines there are, for those without the lock. Written by: holders of the lock.
static LIVE: AtomicU32 = AtomicU32::new(0);
static STARTER: Parker = Parker::new();

/// Orders a machine for `p`, which counts among the searchers already. Inside the runtime.
pub(crate) fn order_machine(p: &'static Processor) {
    FLEET.lock().push(p);
    // ORDERING: Relaxed; a number that steers. The spares did not last.
    let spares = SPARES.load(Relaxed);
    SPARES.store((spares * 2).min(SPARES_MAX), Relaxed);
    STARTER.wake();
}

/// Takes a processor that waits for a machine; the caller searches with it (I1).
pub(crate) fn take_order() -> Option<&'static Processor> {
    if !has_orders() {
        return None;
    }
    FLEET.lock().pop()
}

/// Whether a processor waits for a machine; a hint.
#[inline]
pub(crate) fn has_orders() -> bool {
    // ORDERING: Relaxed; who must not miss one comes from under a lock or a fence (I2).
    ORDERED.load(Relaxed) > 0
}

impl Fleet {
    fn push(&mut self, p: &'static Processor) {
        self.orders[(self.first + self.count) % PROCS_MAX] = Some(p);
        self.count += 1;
        self.publish();
    }

    fn pop(&mut self) -> Option<&'static Processor> {
        self.count = self.count.checked_sub(1)?;
        self.publish();
        let first = self.first;
        self.first = (first + 1) % PROCS_MAX;
        self.orders[first].take()
    }

    fn count_live(&mut self, live: u32, is_refused: bool) {
        (self.live, self.is_refused) = (live, is_refused);
        // ORDERING: Relaxed for both; see `is_exhausted` and `live`.
        EXHAUSTED.store(is_refused || live >= limit(), Relaxed);
        LIVE.store(live, Relaxed);
    }

    fn publish(&self) {
        // ORDERING: Relaxed; see `has_orders`.
        ORDERED.store(self.count as u32, Relaxed);
    }

    /// A record of an ended machine, or of none yet.
    fn take_record(&mut self) -> Option<&'static Machine> {
        // SAFETY: machines are never freed.
        let machine = unsafe { self.ended.as_ref() }?;
        self.ended = machine.next_idle.get();
        Some(machine)
    }
}

/// A sleeping machine was taken: if few are left the starter is to make others in advance.
#[inline]
pub(crate) fn want_spare() {
    // ORDERING: Relaxed looks; AcqRel pairs with the starter's swap.
    if SCHEDULER.sleeping_count() < SPARES.load(Relaxed)
        && !WANTS_SPARE.load(Relaxed)
        && !WANTS_SPARE.swap(true, AcqRel)
    {
        STARTER.wake();
    }
}

/// The caller has put its machine among the sleeping: an order that nobody could serve is for it.
#[inline]
pub(crate) fn machine_sleeps() {
    // ORDERING: between the locks of `give_sleeping` and of the order (I2).
    fence(SeqCst);
    if has_orders() {
        STARTER.wake();
    }
}

/// A machine sleeps until its locked goroutine's turn; undone by [`locked_wakes`].
pub(crate) fn locked_sleeps() {
    // ORDERING: AcqRel pairs with the starter's look.
    LOCKED_ASLEEP.fetch_add(1, AcqRel);
    if has_orders() {
        STARTER.wake();
    }
}

/// How many machines sleep so; a hint.
pub(crate) fn locked_asleep() -> u32 {
    // ORDERING: Relaxed; a statistic.
    LOCKED_ASLEEP.load(Relaxed)
}

pub(crate) fn locked_wakes() {
    // ORDERING: AcqRel, as above.
    LOCKED_ASLEEP.fetch_sub(1, AcqRel);
}

/// Counts the process's main thread, which becomes a machine.
pub(crate) fn adopt() {
    let mut fleet = FLEET.lock();
    let (live, is_refused) = (fleet.live + 1, fleet.is_refused);
    fleet.count_live(live, is_refused);
}

/// A machine's thread is about to end; its record is for the next one. The caller's last use of it.
pub(crate) fn machine_ended(machine: &'static Machine) {
    let mut fleet = FLEET.lock();
    machine.next_idle.set(fleet.ended);
    fleet.ended = machine;
    let live = fleet.live - 1;
    // The next one may be granted.
    fleet.count_live(live, false);
    drop(fleet);
    if has_orders() {
        STARTER.wake();
    }
}

/// Whether no machine can be made at the moment: at the limit, or refused by the system. A hint.
#[inline]
pub(crate) fn is_exhausted() -> bool {
    // ORDERING: Relaxed; a hint.
    EXHAUSTED.load(Relaxed)
}

/// How many machines there are; a hint. Without the lock: goroutines ask too, and may be stopped.
pub(crate) fn live() -> u32 {
    // ORDERING: Relaxed; a hint.
    LIVE.load(Relaxed)
}

/// Somebody has left work for the starter.
pub(crate) fn call_starter() {
    STARTER.wake();
}

/// Starts the starter. Once.
pub(crate) fn start() -> std::io::Result<()> {
    SCHEDULER.machine_started();
    std::thread::Builder::new().name("gosched-starter".into()).spawn(serve)?;
    Ok(())
}

fn serve() {
    crate::start::block_signals();
    let mut retry = RETRY_MIN;
    frames::prepare();
    loop {
        fatal::write_if_asked();
        if serve_orders() {
            retry = RETRY_MIN;
            make_spare_if_wanted();
            gomaxprocs::update_if_asked();
            background::run_if_asked();
            STARTER.sleep();
        } else {
            STARTER.sleep_for(retry);
            retry = (retry * 2).min(RETRY_MAX);
        }
    }
}

/// False: an order is left that can't be served now.
fn serve_orders() -> bool {
    // ORDERING: Acquire: a machine that was born has taken its order before.
    while ORDERED.load(Acquire) > BIRTHS.load(Acquire) {
        if let Some(machine) = SCHEDULER.take_sleeping() {
            if !serve_with(machine) {
                return true;
            }
        } else if let Err(refusal) = make_machine() {
            end_if_exhausted(&refusal);
            // A machine in the poller is none of the sleeping; it takes orders when it is woken.
            idle::wake_one_from_outside();
            return false;
        }
    }
    true
}

/// Gives the sleeping `machine` an order, or back to the sleeping.
fn serve_with(machine: &'static Machine) -> bool {
    match take_order() {
        Some(p) => {
            machine.is_searching.set(true);
            machine.hand_over(p);
            true
        }
        None => {
            SCHEDULER.give_sleeping(machine);
            false
        }
    }
}

fn make_spare_if_wanted() {
    // ORDERING: AcqRel pairs with `want_spare`; Relaxed: a number that steers; Acquire as in
    // `serve_orders`.
    if !WANTS_SPARE.swap(false, AcqRel) {
        return;
    }
    let coming = SCHEDULER.sleeping_count() + BIRTHS.load(Acquire);
    for _ in coming..SPARES.load(Relaxed) {
        // Without a spare things are slower, no more.
        if make_machine().is_err() {
            return;
        }
    }
}

/// Why no thread was made.
enum Refusal {
    AtLimit(u32),
    BySystem(std::io::Error),
}

fn threads_max() -> u32 {
    SCHEDULER.settled.get().map_or(THREADS_MAX_DEFAULT, |settled| settled.threads_max)
}

fn limit() -> u32 {
    threads_max().min(MACHINES_MAX as u32 - 1)
}

/// Makes a machine that looks for an order, and sleeps if it finds none.
fn make_machine() -> Result<(), Refusal> {
    let machine = take_place()?;
    // ORDERING: AcqRel pairs with `born`.
    BIRTHS.fetch_add(1, AcqRel);
    let spawned = std::thread::Builder::new()
        .name(format!("gosched-m{}", machine.id))
        .stack_size(STACK_BYTES)
        .spawn(move || machine::machine_thread(machine));
    match spawned {
        Ok(_) => Ok(()),
        Err(error) => {
            born();
            machine_ended(machine);
            let mut fleet = FLEET.lock();
            let live = fleet.live;
            fleet.count_live(live, true);
            drop(fleet);
            Err(Refusal::BySystem(error))
        }
    }
}

/// The new machine has taken its order, or sleeps.
pub(crate) fn born() {
    // ORDERING: AcqRel pairs with `serve_orders`.
    BIRTHS.fetch_sub(1, AcqRel);
}

/// Counts one more machine, and gives it a record.
fn take_place() -> Result<&'static Machine, Refusal> {
    let limit = limit();
    let mut fleet = FLEET.lock();
    if fleet.live >= limit {
        return Err(Refusal::AtLimit(limit));
    }
    let live = fleet.live + 1;
    fleet.count_live(live, false);
    let record = fleet.take_record();
    drop(fleet);
    Ok(record.unwrap_or_else(|| Machine::leak(SCHEDULER.next_machine_id())))
}

/// Ends the process if every machine there is waits for its locked goroutine's turn: nobody is left
/// who could give it one.
fn end_if_exhausted(refusal: &Refusal) {
    // ORDERING: Acquire pairs with `locked_sleeps`.
    let have = live();
    if LOCKED_ASLEEP.load(Acquire) < have {
        return;
    }
    let mut out = Stderr;
    let _ = match refusal {
        Refusal::AtLimit(limit) => writeln!(
            out,
            "runtime: program exceeds {limit}-thread limit\nfatal error: thread exhaustion"
        ),
        Refusal::BySystem(error) => writeln!(
            out,
            "runtime: failed to create new OS thread (have {have} already; errno={})\n\
             runtime: may need to increase max user processes (ulimit -u)\n\
             fatal error: newosproc",
            error.raw_os_error().unwrap_or(0)
        ),
    };
    os::exit_group(2)
}
