//! Measures what stacks cost and prints it, one figure a line. Build it with `--release`.

use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use gosched_fiber::stack::{self, Cache, Class, Depot, GuardKind, Stack};

const FRESH: usize = 20_000;
const MILLION: usize = 1_000_000;

fn main() {
    hot();
    lookups();
    fresh("fresh, marker guard", &MARKED, FRESH, |_| {});
    fresh("fresh, marker guard, two pages touched", &MARKED_TOUCHED, FRESH, touch_two);
    fresh("fresh, marker guard, two pages populated", &MARKED_POPULATED, FRESH, populate_two);
    fresh("fresh, protected guard, two pages touched", &PROTECTED, FRESH, touch_two);
    fresh("fresh, canary, two pages touched", &CANARIED, FRESH, touch_two);
    million();
}

static MARKED: Depot = Depot::restricted(GuardKind::Marker, 64 << 30, 0);
static MARKED_TOUCHED: Depot = Depot::restricted(GuardKind::Marker, 64 << 30, 0);
static MARKED_POPULATED: Depot = Depot::restricted(GuardKind::Marker, 64 << 30, 0);
static PROTECTED: Depot = Depot::restricted(GuardKind::Protect, 64 << 30, 65_530);
static CANARIED: Depot = Depot::restricted(GuardKind::Canary, 64 << 30, 0);

fn hot() {
    const ROUNDS: usize = 10_000_000;
    stack::free(take());
    report("alloc and free, depot", ROUNDS, || (0..ROUNDS).for_each(|_| stack::free(take())));
    let mut cache = Cache::new();
    let first = cache.alloc(Class::DEFAULT).expect("a stack");
    cache.free(first);
    report("alloc and free, cache", ROUNDS, || {
        for _ in 0..ROUNDS {
            let stack = cache.alloc(Class::DEFAULT).expect("a stack");
            cache.free(black_box(stack));
        }
    });
    report("grow and return", ROUNDS / 10, || {
        for i in 0..ROUNDS / 10 {
            black_box(stack::grow(64 << 10, || i));
        }
    });
    let mut own = take();
    report("call_on", ROUNDS, || {
        for i in 0..ROUNDS {
            black_box(stack::call_on(&mut own, || i));
        }
    });
    stack::free(own);
}

fn lookups() {
    const ROUNDS: usize = 10_000_000;
    let stack = take();
    let address = stack.top() - 8;
    report("slot_of, a slot", ROUNDS, || {
        for _ in 0..ROUNDS {
            black_box(stack::slot_of(black_box(address)));
        }
    });
    report("remaining, a thread's stack", ROUNDS, || {
        for _ in 0..ROUNDS {
            black_box(stack::remaining());
        }
    });
    stack::free(stack);
}

fn fresh(what: &str, depot: &Depot, count: usize, touch: impl Fn(&Stack)) {
    let mut stacks = Vec::with_capacity(count);
    report(what, count, || {
        for _ in 0..count {
            let stack = depot.alloc(Class::DEFAULT).expect("a stack");
            touch(&stack);
            stacks.push(stack);
        }
    });
    stacks.into_iter().for_each(|stack| depot.free(stack));
    depot.trim(Class::DEFAULT, 0);
}

fn million() {
    let mut stacks = Vec::with_capacity(MILLION);
    report("a million with one page", MILLION, || {
        for _ in 0..MILLION {
            let stack = take();
            write_to(stack.top() - 8);
            stacks.push(stack);
        }
    });
    shuffle(&mut stacks);
    report("free of the million, in random order", MILLION, || {
        stacks.drain(..).for_each(stack::free);
    });
    let start = Instant::now();
    let count = stack::trim(Class::DEFAULT, 0);
    println!("{:<50} {:>9.1} ms", format!("trim of {count}"), start.elapsed().as_secs_f64() * 1e3);
}

fn take() -> Stack {
    stack::alloc(Class::DEFAULT).expect("a stack")
}

fn touch_two(stack: &Stack) {
    write_to(stack.top() - 8);
    write_to(stack.top() - 4_096 - 8);
}

fn populate_two(stack: &Stack) {
    let at = ptr::with_exposed_provenance_mut(stack.top() - 8_192);
    // SAFETY: makes pages of a stack that we own present.
    unsafe { libc::madvise(at, 8_192, libc::MADV_POPULATE_WRITE) };
}

fn write_to(address: usize) {
    // SAFETY: callers pass addresses in stacks that they own.
    unsafe { ptr::with_exposed_provenance_mut::<u64>(address).write_volatile(1) };
}

/// Fisher and Yates, with a fixed seed.
fn shuffle(stacks: &mut [Stack]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for i in (1..stacks.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        stacks.swap(i, (state % (i as u64 + 1)) as usize);
    }
}

fn report(what: &str, rounds: usize, run: impl FnOnce()) {
    let start = Instant::now();
    run();
    println!("{what:<50} {:>9.1} ns", start.elapsed().as_nanos() as f64 / rounds as f64);
}
