//! The table of acts, and the goroutines that do one after the other.

use crate::{family, foreign, handler, kernel, library, locals, locks, memory, stack, state, text};
use crate::{is_over, pulse, unwind};
use std::env;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use testprogs::random::Random;

/// Something that takes some hundred microseconds and checks all that it comes to.
type Act = fn(&mut Random);

/// An act, how often it is drawn, and whether it needs thread-locals of the goroutine's own.
struct Kind {
    name: &'static str,
    act: Act,
    weight: u64,
    needs_own: bool,
}

const fn kind(name: &'static str, act: Act, weight: u64) -> Kind {
    Kind { name, act, weight, needs_own: false }
}

const fn own(name: &'static str, act: Act, weight: u64) -> Kind {
    Kind { name, act, weight, needs_own: true }
}

const KINDS: [Kind; 21] = [
    kind("registers", state::registers, 12),
    kind("floats", state::floats, 8),
    kind("exchange", memory::exchange, 8),
    kind("collections", memory::collections, 4),
    own("thread_locals", locals::maps, 8),
    own("errno", locals::errno, 4),
    kind("format", text::format, 4),
    kind("print", text::print, 2),
    kind("unwind", unwind::caught, 4),
    kind("backtrace", unwind::backtrace, 1),
    kind("std_locks", locks::std_locks, 6),
    // It parks on a record in a thread-local: two goroutines of one thread would share it.
    own("parking_lot", locks::parking_lot, 6),
    kind("condvar", locks::condvar, 2),
    kind("qsort", foreign::qsort, 4),
    kind("dl_iterate_phdr", foreign::modules, 2),
    kind("libc", foreign::others, 4),
    kind("spawn_join", family::spawn_join, 3),
    kind("blocked", kernel::blocked, 2),
    own("crowd", kernel::crowd, 1),
    kind("library", library::load, 1),
    kind("handler", handler::signalled, 3),
];

/// Acts that leave the goroutine's stack.
const ELSEWHERE: Kind = kind("foreign_stack", stack::foreign, 2);

/// How often an act was done.
pub(crate) struct Done(AtomicU64);

impl Done {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

const fn counts() -> [(&'static str, Done); KINDS.len() + 1] {
    let mut counts = [const { ("", Done(AtomicU64::new(0))) }; KINDS.len() + 1];
    let mut i = 0;
    while i < KINDS.len() {
        counts[i].0 = KINDS[i].name;
        i += 1;
    }
    counts[i].0 = ELSEWHERE.name;
    counts
}

/// Names and counts of all acts.
pub(crate) static DONE: [(&str, Done); KINDS.len() + 1] = counts();

/// What actor `i` does.
pub(crate) fn until_over(i: u64, mut random: Random) {
    text::begin(i);
    while !is_over() {
        once(&mut random);
        pulse::beat();
    }
}

/// One act, whichever.
pub(crate) fn once(random: &mut Random) {
    let (i, kind) = draw(random);
    if kind.needs_own && pulse::shares_thread_locals() || is_left_out(kind.name) {
        return;
    }
    (kind.act)(random);
    DONE[i].1.0.fetch_add(1, Relaxed);
}

/// Whether `TORTURE_WITHOUT` names it: to find out which act it takes for a failure.
fn is_left_out(name: &str) -> bool {
    static LEFT_OUT: OnceLock<String> = OnceLock::new();
    let left_out = LEFT_OUT.get_or_init(|| env::var("TORTURE_WITHOUT").unwrap_or_default());
    left_out.split(',').any(|act| act == name)
}

fn draw(random: &mut Random) -> (usize, &'static Kind) {
    static ALL: [&Kind; KINDS.len() + 1] = {
        let mut all = [&ELSEWHERE; KINDS.len() + 1];
        let mut i = 0;
        while i < KINDS.len() {
            all[i] = &KINDS[i];
            i += 1;
        }
        all
    };
    let sum: u64 = ALL.iter().map(|kind| kind.weight).sum();
    let mut left = random.below(sum);
    let drawn = ALL.iter().position(|kind| {
        let is_it = left < kind.weight;
        left = left.saturating_sub(kind.weight);
        is_it
    });
    let i = drawn.expect("the weights' sum is the bound");
    (i, ALL[i])
}
