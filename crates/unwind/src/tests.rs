use crate::{Frames, Registers, here, symbols, walk};
use gosched_fiber::stack::{self, Class};
use std::cell::Cell;
use std::ffi::c_int;

fn names(frames: &Frames) -> Vec<String> {
    symbols::with(|table| {
        frames
            .pcs()
            .iter()
            .flat_map(|pc| table.at(*pc).to_vec())
            .map(|symbol| symbol.function.to_string())
            .collect()
    })
}

/// Ready for the walks of all tests at the same time.
fn prepare() {
    crate::reserve(8);
    crate::prepare();
}

/// The place of the first name that ends so.
#[track_caller]
fn place(names: &[String], end: &str) -> usize {
    match names.iter().position(|name| name.ends_with(end)) {
        Some(place) => place,
        None => panic!("{end} is not in {names:#?}"),
    }
}

#[inline(never)]
fn outer(frames: &mut Frames) -> usize {
    inner(frames) + 1
}

#[inline(never)]
fn inner(frames: &mut Frames) -> usize {
    assert!(here(frames));
    frames.pcs().len()
}

#[test]
fn callers_of_a_thread_with_names_and_lines() {
    prepare();
    let mut frames = Frames::new();
    let line = line!() + 1;
    outer(&mut frames);
    let names = names(&frames);
    assert!(names[0].ends_with("::inner") || names[0].ends_with("::here"), "{names:?}");
    assert!(place(&names, "::inner") < place(&names, "::outer"));
    // A walk that lost its way would not come to the thread's beginning.
    place(&names, "thread_start");
    let me = symbols::with(|table| {
        let all = frames.pcs().iter().flat_map(|pc| table.at(*pc).to_vec());
        all.into_iter().find(|s| s.file.ends_with("tests.rs") && s.line == line)
    });
    assert!(me.is_some_and(|me| me.function.contains("callers_of_a_thread") && me.offset > 0));
}

thread_local! {
    static SEEN: Cell<Option<Box<Frames>>> = const { Cell::new(None) };
}

extern "C" fn handler(_: c_int) {
    let mut frames = SEEN.take().expect("there is one");
    here(&mut frames);
    SEEN.set(Some(frames));
}

#[inline(never)]
fn interrupted() -> c_int {
    // SAFETY: a handler for it is installed.
    let done = unsafe { libc::raise(libc::SIGUSR1) };
    // Otherwise it would be a jump, and this no frame.
    std::hint::black_box(done)
}

#[test]
fn from_a_handler_to_what_it_has_interrupted() {
    let handler: extern "C" fn(c_int) = handler;
    // SAFETY: the handler touches only what this thread has made.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    prepare();
    SEEN.set(Some(Box::default()));
    assert_eq!(interrupted(), 0);
    let names = names(&SEEN.take().expect("put back"));
    assert!(place(&names, "::handler") < place(&names, "::interrupted"), "{names:?}");
    assert!(place(&names, "::interrupted") < place(&names, "thread_start"), "{names:?}");
}

#[test]
fn over_a_further_stack() {
    prepare();
    let mut frames = Frames::new();
    stack::grow(64 << 10, || inner(&mut frames));
    let names = names(&frames);
    assert!(place(&names, "::inner") < place(&names, "switch_stack"), "{names:?}");
    place(&names, "thread_start");
}

/// Whichever of two stacks lies lower.
#[test]
fn from_one_further_stack_to_another() {
    prepare();
    let new = || stack::alloc(Class::SMALL).expect("a stack");
    let (mut one, mut two) = (new(), new());
    let walk_over = |outer: &mut stack::Stack, inner_one: &mut stack::Stack| {
        let mut frames = Frames::new();
        stack::call_on(outer, || stack::call_on(inner_one, || inner(&mut frames)));
        let names = names(&frames);
        let switches = names.iter().filter(|name| name.ends_with("switch_stack"));
        assert_eq!(switches.count(), 2, "{names:#?}");
        place(&names, "thread_start");
    };
    walk_over(&mut one, &mut two);
    walk_over(&mut two, &mut one);
    stack::free(one);
    stack::free(two);
}

/// Whatever the registers hold, and whatever the stack.
#[test]
fn garbage_gives_frames_or_none() {
    prepare();
    let stack = stack::alloc(Class::SMALL).expect("a stack");
    let (limit, top) = (stack.limit(), stack.top());
    let words = (top - limit) / size_of::<usize>();
    let code = outer as *const () as usize;
    let mut state = 0x2545_f491_4f6c_dd1d_usize;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut anything = || match random() % 6 {
        0 => (limit - 4096 + random() % (top - limit + 8192)) & !7,
        1 => code.wrapping_add(random() % (1 << 20)).wrapping_sub(1 << 19),
        2 => random() % 4096,
        3 => usize::MAX - random() % 64,
        4 => ((&raw const words).addr() + random() % 8192) & !7,
        _ => random(),
    };
    for at in 0..words {
        // SAFETY: a word of the stack, which nobody uses.
        unsafe { (limit as *mut usize).wrapping_add(at).write(anything()) };
    }
    let mut frames = Frames::new();
    let mut long = 0;
    for _ in 0..100_000 {
        let registers = Registers { pc: anything(), sp: anything(), bp: anything() };
        walk(registers, &mut frames);
        assert!(!frames.pcs().is_empty());
        long += usize::from(frames.pcs().len() > 2);
    }
    assert!(long > 100, "{long}");
    stack::free(stack);
}
