//! Overflows a stack in the way that the first argument names.
//!
//! Prints the bounds of the stack that will overflow before it does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::env;
use std::ffi::{CString, c_int, c_void};
use std::hint::black_box;
use std::mem;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use gosched_fiber::fault::{self, Hooks, Identity};
use gosched_fiber::stack::{self, Class, Depot, GuardKind, SlotInfo, Stack};

/// An allocator that can be told to recurse without end while it holds its lock.
struct Recursing;

static ARMED: AtomicBool = AtomicBool::new(false);
static LOCK: Mutex<()> = Mutex::new(());

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Recursing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _guard = LOCK.lock();
        if ARMED.load(SeqCst) {
            descend(0);
        }
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let _guard = LOCK.lock();
        // SAFETY: passed on.
        unsafe { System.dealloc(at, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Recursing = Recursing;

fn main() {
    fault::install().expect("installs");
    let mode = env::args().nth(1).expect("a mode");
    match mode.as_str() {
        "one-of-many" => with_hooks(&NAMED, one_of_many),
        "anonymous" => one_of_many(),
        "dump" => with_hooks(&DUMPING, one_of_many),
        "bad-hook" => with_hooks(&FAULTING, one_of_many),
        "grown" => with_hooks(&NAMED, grown),
        "own-alternate-stack" => own_alternate_stack(),
        "loader-lock" => with_hooks(&NAMED, holding_the_loader_lock),
        "allocator-lock" => with_hooks(&NAMED, holding_the_allocator_lock),
        "two-at-once" => two_at_once(),
        "c-frame" => with_hooks(&NAMED, c_frame),
        "plain-thread" => drop(thread::spawn(|| descend(0)).join()),
        "canary" => canary(),
        "canary-in-cache" => canary_in_cache(),
        other => panic!("no mode {other}"),
    }
    println!("still alive");
}

static NAMED: Hooks = Hooks { identity: number_seven, dump: no_dump };
static DUMPING: Hooks = Hooks { identity: number_seven, dump: short_dump };
static FAULTING: Hooks = Hooks { identity: number_seven, dump: faulting_dump };

fn number_seven(_: &SlotInfo) -> Option<Identity> {
    Some(Identity { id: 7, name: Some(b"name") })
}

fn no_dump(_: &SlotInfo) {}

fn short_dump(_: &SlotInfo) {
    let text = b"\tdump\n";
    // SAFETY: valid for reads of its length.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

fn faulting_dump(_: &SlotInfo) {
    // SAFETY: none; this is the fault that the test is about.
    unsafe { ptr::without_provenance_mut::<u8>(64).write_volatile(1) };
}

fn with_hooks(hooks: &'static Hooks, run: fn()) {
    fault::set_hooks(hooks);
    run();
}

#[inline(never)]
fn descend(depth: usize) -> usize {
    let frame = black_box([depth; 32]);
    // Not a tail call, and the end is out of reach.
    if depth == usize::MAX { 0 } else { descend(depth + 1) + frame[depth % 32] }
}

fn announce(stack: &Stack) {
    println!("[{:#x}, {:#x}]", stack.limit(), stack.top());
}

fn one_of_many() {
    let mut stacks: Vec<_> =
        (0..1_000).map(|_| stack::alloc(Class::DEFAULT).expect("a stack")).collect();
    announce(&stacks[500]);
    stack::call_on(&mut stacks[500], || descend(0));
}

fn grown() {
    stack::grow(1 << 20, || stack::grow(64 << 10, || descend(0)));
}

fn own_alternate_stack() {
    // A thread as C makes it, without an alternate stack until it installs ours.
    extern "C" fn body(_: *mut c_void) -> *mut c_void {
        let installed = fault::alternate_stack_install().expect("installs");
        stack::grow(64 << 10, || descend(0));
        drop(installed);
        ptr::null_mut()
    }
    let mut thread = 0;
    // SAFETY: `body` has the right type, and is joined before `main` ends.
    unsafe { libc::pthread_create(&mut thread, ptr::null(), body, ptr::null_mut()) };
    // SAFETY: created above, joined once.
    unsafe { libc::pthread_join(thread, ptr::null_mut()) };
}

fn holding_the_loader_lock() {
    extern "C" fn visit(_: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
        stack::grow(64 << 10, || descend(0));
        0
    }
    // SAFETY: `visit` has the right type and uses no data.
    unsafe { libc::dl_iterate_phdr(Some(visit), ptr::null_mut()) };
}

fn holding_the_allocator_lock() {
    let mut own = stack::alloc(Class::SMALL).expect("a stack");
    announce(&own);
    ARMED.store(true, SeqCst);
    stack::call_on(&mut own, || drop(black_box(Box::new(1))));
}

fn two_at_once() {
    let threads: Vec<_> =
        (0..8).map(|_| thread::spawn(|| stack::grow(64 << 10, || descend(0)))).collect();
    threads.into_iter().for_each(|thread| drop(thread.join()));
}

/// Calls `big_frame` of the library named by the second argument with little stack left.
fn c_frame() {
    let path = CString::new(env::args().nth(2).expect("a library")).expect("no zero byte");
    // SAFETY: the library's initialisers do nothing.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null(), "the library loads");
    // SAFETY: the handle is valid.
    let symbol = unsafe { libc::dlsym(library, c"big_frame".as_ptr()) };
    assert!(!symbol.is_null(), "the function is there");
    // SAFETY: the test's C source declares the function so.
    let big_frame = unsafe { mem::transmute::<*mut c_void, extern "C" fn(c_int) -> c_int>(symbol) };
    let (mut above, mut below) = (
        stack::alloc(Class::SMALL).expect("a stack"),
        stack::alloc(Class::SMALL).expect("a stack"),
    );
    if above.top() < below.top() {
        mem::swap(&mut above, &mut below);
    }
    announce(&above);
    stack::call_on(&mut above, || use_up_then(1, big_frame));
    let _ = (above, below);
}

/// Descends until less than two frames of the C function fit, then calls it twice nested.
#[inline(never)]
fn use_up_then(depth: usize, call: extern "C" fn(c_int) -> c_int) -> usize {
    let frame = black_box([depth; 128]);
    if stack::remaining().expect("on a slot") < 8 << 10 {
        return call(1) as usize;
    }
    use_up_then(depth + 1, call) + frame[depth % 128]
}

static UNGUARDED: Depot = Depot::restricted(GuardKind::Canary, 1 << 20, 0);

/// Writes where an overflow would.
fn overwrite_below(stack: &Stack) {
    let below = ptr::with_exposed_provenance_mut::<u64>(stack.limit() - 16);
    // SAFETY: unguarded stacks have writable memory there that belongs to nobody.
    unsafe { below.write_volatile(1) };
}

fn canary() {
    let stack = UNGUARDED.alloc(Class::SMALL).expect("a stack");
    overwrite_below(&stack);
    UNGUARDED.free(stack);
}

fn canary_in_cache() {
    let mut cache = stack::Cache::of(&UNGUARDED);
    let stack = cache.alloc(Class::SMALL).expect("a stack");
    overwrite_below(&stack);
    cache.free(stack);
}
