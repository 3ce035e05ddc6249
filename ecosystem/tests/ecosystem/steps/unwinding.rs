//! Panics, exceptions and backtraces.

use crate::carry::{Carriers, coroutine, hop};
use crate::mode::Mode;
use crate::step::Step;
use std::backtrace::Backtrace;
use std::ffi::{c_int, c_long};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

pub(crate) const STEPS: &[Step] = &[
    Step::inside("panic caught after a move", panic_caught),
    Step::inside("move in a drop while unwinding", move_while_unwinding),
    Step::inside("panic in a drop beside another's unwinding", nested_unwinding),
    Step::outside("panic leaves the coroutine", panic_leaves),
    Step::outside("backtrace ends at the first frame", backtrace_ends)
        .except(&[(Mode::Threads, "a thread's backtrace goes on into libc's start of threads")]),
    Step::inside("backtrace across a move", backtrace_across_a_move),
    Step::inside("C++ exception through moving frames", cpp_exception),
    Step::outside("C++ thread_local with a destructor", cpp_thread_local),
];

fn panic_caught() {
    for i in 0..3 {
        let result = catch_unwind(|| {
            hop();
            panic_any(i);
        });
        hop();
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&i));
        assert!(!thread::panicking());
    }
}

/// Moves when it is dropped, and counts the drops that a panic caused.
struct MovesOnDrop<'a>(&'a AtomicUsize);

impl Drop for MovesOnDrop<'_> {
    fn drop(&mut self) {
        hop();
        self.0.fetch_add(usize::from(thread::panicking()), SeqCst);
        hop();
    }
}

#[inline(never)]
fn dive(depth: usize, count: &AtomicUsize) {
    let _moves = MovesOnDrop(count);
    match depth {
        0 => panic!("as asked"),
        _ => dive(depth - 1, count),
    }
}

fn move_while_unwinding() {
    let count = AtomicUsize::new(0);
    let result = catch_unwind(AssertUnwindSafe(|| dive(9, &count)));
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&"as asked"));
    assert_eq!(count.load(SeqCst), 10);
    hop();
    assert!(!thread::panicking());
    drop(MovesOnDrop(&count));
    assert_eq!(count.load(SeqCst), 10);
}

/// Panics and catches it, in the middle of another panic, after a move.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        hop();
        let inner = catch_unwind(|| {
            hop();
            panic_any(2);
        });
        assert_eq!(inner.unwrap_err().downcast_ref(), Some(&2));
        hop();
    }
}

fn nested_unwinding() {
    let outer = catch_unwind(|| {
        let _first = PanicsOnDrop;
        let _second = PanicsOnDrop;
        panic_any(1);
    });
    assert_eq!(outer.unwrap_err().downcast_ref(), Some(&1));
    let again = catch_unwind(|| resume_unwind(Box::new(3)));
    assert_eq!(again.unwrap_err().downcast_ref(), Some(&3));
    assert!(!thread::panicking());
}

fn panic_leaves(carriers: &Carriers) {
    for i in 0..20 {
        let result = catch_unwind(AssertUnwindSafe(|| {
            carriers.run(move || {
                hop();
                panic_any(i);
            });
        }));
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&i));
        assert!(!thread::panicking());
    }
}

/// Has a name that no optimiser takes away.
#[inline(never)]
fn marked_frame(depth: usize) -> String {
    let trace = match depth {
        0 => Backtrace::force_capture().to_string(),
        _ => marked_frame(depth - 1),
    };
    std::hint::black_box(trace)
}

fn backtrace_ends(carriers: &Carriers) {
    carriers.run(|| {
        for _ in 0..2 {
            let trace = marked_frame(3);
            let frames: Vec<&str> = trace.lines().filter(|line| is_frame(line)).collect();
            let marked = frames.iter().filter(|f| f.contains("marked_frame")).count();
            assert_eq!(marked, 4, "{trace}");
            let last = frames.last().unwrap();
            assert!(last.contains("first_frame") || last.contains("coroutine::entry"), "{trace}");
            assert!(!trace.contains("resume"), "the carrier's frames:\n{trace}");
            hop();
        }
    });
}

/// Whether a line of a backtrace begins a frame: `  12: name`.
fn is_frame(line: &str) -> bool {
    line.trim_start().split_once(": ").is_some_and(|(n, _)| n.parse::<u32>().is_ok())
}

fn backtrace_across_a_move() {
    let before = Backtrace::force_capture();
    hop();
    // Symbols are looked up when it is printed.
    let text = before.to_string();
    hop();
    assert!(text.contains("backtrace_across_a_move"), "{text}");
    assert!(Backtrace::force_capture().to_string().contains("backtrace_across_a_move"));
}

// `tests/fixtures/exceptions.cc`.
unsafe extern "C-unwind" {
    fn throw_through(hop: extern "C-unwind" fn(), depth: c_int) -> c_int;
    fn visits_add() -> c_long;
    fn visits_destroyed() -> c_long;
}

extern "C-unwind" fn hop_for_cpp() {
    hop();
}

fn cpp_exception() {
    for depth in [0, 1, 7] {
        // SAFETY: the fixture takes any depth, and calls back on this fiber only.
        assert_eq!(unsafe { throw_through(hop_for_cpp, depth) }, depth + 1);
        hop();
    }
}

fn cpp_thread_local(carriers: &Carriers) {
    let visit = || {
        // SAFETY: no arguments.
        unsafe { visits_add() }
    };
    let work = || {
        coroutine(move || {
            for i in 1..=20 {
                assert_eq!(visit(), "visits:".len() as c_long + i);
                hop();
            }
        })
    };
    let destroyed = || {
        // SAFETY: no arguments.
        unsafe { visits_destroyed() }
    };
    for i in 1..=10 {
        carriers.drive(vec![work()]);
        assert_eq!(destroyed(), i);
    }
    carriers.drive((0..10).map(|_| work()).collect());
    assert_eq!(destroyed(), 20);
}
