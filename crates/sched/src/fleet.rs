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
//! * I2. No order stays while a machine sleeps or can be made; see `orders`.
//! * I3. `live` counts machines that have a thread or are about to have one; at most the limit,
//!   except that a main thread is adopted whatever it is.
//!
//! At the limit, and when the system refuses a thread, orders wait: machines in calls come back. So
//! that they do not wait behind one that always has something to run, machines go from processor to
//! processor meanwhile, see [`take_turns`].
//! Only if every machine sleeps with its locked goroutine can nothing help, and the process ends
//! with Go's words. (Go ends it as soon as it needs one thread too many.)
//!
//! Rejected: ending the process at the limit, since blocked calls do return; handing the order to a
//! new thread by name, since a machine that returns earlier would have to wait.

use crate::history::{self, Kind};
use crate::machine::Machine;
use crate::processor::Processor;
use crate::scheduler::{MACHINES_MAX, PROCS_MAX, SCHEDULER};
use crate::switch::FAIRNESS_ROUNDS;
use crate::{background, fatal, frames, gomaxprocs, idle};
use gosched_base::{Lock, Stderr, os};
use gosched_fiber::thread;
use std::fmt::Write;
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use std::time::Duration;

mod orders;

use self::orders::{Crew, Orders};

/// Go's number.
pub(crate) const THREADS_MAX_DEFAULT: u32 = 10_000;
/// Most machines that are kept ready; fewer than those that sleep without end, see `idle`.
const SPARES_MAX: u32 = 4;
/// A machine's own stack; goroutines have theirs.
const STACK_BYTES: usize = 256 << 10;
/// As std's threads: it reads files, and the names of functions.
const STARTER_STACK_BYTES: usize = 2 << 20;
/// After the system has refused a thread, the next attempt is made after that long if nothing has
/// happened before; then twice that, and so on.
const RETRY_MIN: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(1);

struct Fleet {
    live: u32,
    /// The system has refused the last thread that was asked for.
    is_refused: bool,
    /// Records of machines that have ended.
    ended: *const Machine,
}

// SAFETY: machines are never freed; the pointer is used under the lock.
unsafe impl Send for Fleet {}

static ORDERS: Orders<&Processor, PROCS_MAX> = Orders::new();
static FLEET: Lock<Fleet> =
    Lock::new(Fleet { live: 0, is_refused: false, ended: std::ptr::null() });
/// Machines that sleep until their locked goroutine has its turn.
static LOCKED_ASLEEP: AtomicU32 = AtomicU32::new(0);
/// Whether no machine can be made at the moment. Written under the lock.
static EXHAUSTED: AtomicBool = AtomicBool::new(false);
static WANTS_SPARE: AtomicBool = AtomicBool::new(false);
/// How many sleeping machines are kept ready: one, more once that was not enough.
static SPARES: AtomicU32 = AtomicU32::new(1);
/// How many machines there are, for those without the lock. Written by: holders of the lock.
static LIVE: AtomicU32 = AtomicU32::new(0);

/// Orders a machine for `p`, which counts among the searchers already. Inside the runtime.
pub(crate) fn order_machine(p: &'static Processor) {
    // ORDERING: Relaxed; a number that steers. The spares did not last.
    let spares = SPARES.load(Relaxed);
    SPARES.store((spares * 2).min(SPARES_MAX), Relaxed);
    ORDERS.push(p);
}

/// Takes a processor that waits for a machine; the caller searches with it (I1).
pub(crate) fn take_order() -> Option<&'static Processor> {
    ORDERS.take()
}

/// Whether it is time, where no machine can be made, to let a processor that waits in an order have
/// the one that holds `p`: that one has run its goroutines for as many rounds as it does before it
/// looks at what all have.
pub(crate) fn must_take_turns(p: &Processor) -> bool {
    has_orders() && (p.tick() + 1).is_multiple_of(FAIRNESS_ROUNDS)
}

/// A slice on `p` is used up: where processors take turns at machines, that is a turn.
#[inline]
pub(crate) fn slice_is_over(p: &Processor) {
    if is_exhausted() && has_orders() {
        p.age(FAIRNESS_ROUNDS);
    }
}

/// `machine` puts its processor last among the orders, and takes the first of them.
#[cold]
pub(crate) fn take_turns(machine: &'static Machine, p: &'static Processor) {
    history::processor(Kind::Transit, p);
    machine.part_with(p);
    p.set_machine(None);
    // One round more, or it would have to let others have a turn again at once.
    p.count_tick();
    // The one that is taken counted among the searchers (I1), and the other one does instead.
    let next = ORDERS.exchange(p);
    idle::acquire(machine, next);
    // It is the same one if another machine has come first.
    if next.id != p.id {
        SCHEDULER.counts.machine_turns.add_shared();
    }
}

/// Whether a processor waits for a machine; a hint.
#[inline]
pub(crate) fn has_orders() -> bool {
    ORDERS.has_any()
}

impl Fleet {
    fn count_live(&mut self, live: u32, is_refused: bool) {
        (self.live, self.is_refused) = (live, is_refused);
        // ORDERING: Relaxed for both; see `is_exhausted` and `live`.
        EXHAUSTED.store(is_refused || live >= limit(), Relaxed);
        LIVE.store(live, Relaxed);
    }

    /// One machine less; its record is for the next one.
    fn give_place(&mut self, machine: &'static Machine, is_refused: bool) {
        machine.next_idle.set(self.ended);
        self.ended = machine;
        self.count_live(self.live - 1, is_refused);
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
        ORDERS.call_starter();
    }
}

/// The caller has put its machine among the sleeping: an order that nobody could serve is for it.
#[inline]
pub(crate) fn machine_sleeps() {
    ORDERS.machine_sleeps();
}

/// A machine sleeps until its locked goroutine's turn; undone by [`locked_wakes`].
pub(crate) fn locked_sleeps() {
    // ORDERING: AcqRel pairs with the starter's look.
    LOCKED_ASLEEP.fetch_add(1, AcqRel);
    ORDERS.call_if_any();
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
    // The next one may be granted.
    FLEET.lock().give_place(machine, false);
    ORDERS.call_if_any();
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
    ORDERS.call_starter();
}

/// Starts the starter. Once.
pub(crate) fn start() -> std::io::Result<()> {
    SCHEDULER.machine_started();
    static SERVE: fn() = serve;
    thread::start(&SERVE, Some(STARTER_STACK_BYTES))
}

fn serve() {
    thread::set_name(c"gosched-starter");
    crate::start::block_signals();
    let mut retry = RETRY_MIN;
    frames::prepare();
    loop {
        fatal::write_if_asked();
        let served = ORDERS.serve(&Machines);
        if served.is_ok() {
            retry = RETRY_MIN;
            make_spare_if_wanted();
            gomaxprocs::update_if_asked();
            background::run_if_asked();
            ORDERS.starter().sleep();
        } else {
            ORDERS.starter().sleep_for(retry);
            retry = (retry * 2).min(RETRY_MAX);
        }
    }
}

/// The machines of this process.
struct Machines;

impl Crew for Machines {
    type Processor = &'static Processor;
    type Machine = &'static Machine;
    type Refusal = ();

    fn take_sleeping(&self) -> Option<&'static Machine> {
        SCHEDULER.take_sleeping()
    }

    fn give_sleeping(&self, machine: &'static Machine) {
        SCHEDULER.give_sleeping(machine);
    }

    fn send(&self, machine: &'static Machine, p: &'static Processor) {
        machine.is_searching.set(true);
        machine.hand_over(p);
    }

    fn make(&self) -> Result<(), ()> {
        make_machine().map_err(|refusal| {
            end_if_exhausted(&refusal);
            // A machine in the poller is none of the sleeping; it takes orders when it is woken.
            idle::wake_one_from_outside();
        })
    }
}

fn make_spare_if_wanted() {
    // ORDERING: AcqRel pairs with `want_spare`; Relaxed: a number that steers.
    if !WANTS_SPARE.swap(false, AcqRel) {
        return;
    }
    let coming = SCHEDULER.sleeping_count() + ORDERS.births();
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
    ORDERS.begin_birth();
    match machine.start_thread(STACK_BYTES) {
        Ok(()) => Ok(()),
        Err(error) => {
            ORDERS.call_off_birth();
            // Without a call for the starter, which is to pause now.
            FLEET.lock().give_place(machine, true);
            Err(Refusal::BySystem(error))
        }
    }
}

/// The new machine has taken its order, or sleeps.
pub(crate) fn born() {
    ORDERS.born();
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
