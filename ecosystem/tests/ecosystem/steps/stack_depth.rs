//! How much stack common deep work takes, measured; the default size is chosen from it.

use crate::mode::Mode;
use crate::step::Step;
use gosched_fiber::stack::{self, Class};
use gosched_fiber::{Coroutine, arch};
use std::arch::asm;
use std::net::ToSocketAddrs;
use std::sync::mpsc;

pub(crate) const STEPS: &[Step] = &[
    Step::outside("stack: nothing at all", |_| check("nothing at all", || ())).except(NOT_OURS),
    Step::outside("stack: format", |_| check("format", format)).except(NOT_OURS),
    Step::outside("stack: serde_json at depth 128", |_| {
        check("serde_json, parse at depth 128", || drop(parse()));
        check("serde_json, print at depth 128", || drop(elsewhere(parse).to_string()));
        check("serde_json, clone and drop at depth 128", || drop(elsewhere(parse).clone()));
    })
    .except(NOT_OURS),
    Step::outside("stack: regex", |_| check("regex, compile and match", regex)).except(NOT_OURS),
    Step::outside("stack: panic with a backtrace", |_| {
        check("panic with a full backtrace", panic_with_backtrace);
    })
    .except(NOT_OURS),
    Step::outside("stack: name resolution", |_| check("name resolution", resolve)).except(NOT_OURS),
    Step::outside("stack: SQLite", |_| check("SQLite", sqlite)).except(NOT_OURS),
    Step::outside("stack: tokio runtime", |_| check("tokio runtime", tokio)).except(NOT_OURS),
];

const NOT_OURS: &[(Mode, &str)] = &[(Mode::Threads, "the stack is std's, of its default size")];

/// Large enough for whatever is measured.
const ROOM: Class = Class::MIB_1;
/// What untouched stack looks like.
const PAINT: u8 = 0xa5;

/// Measures `f`, says what it took, and fails if it does not fit on a default stack.
fn check(what: &str, f: fn()) {
    let used = measure(f);
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    println!("stack: {what} ({build}): {:.1} KiB", used as f64 / 1024.0);
    assert!(used <= Class::DEFAULT.usable_bytes(), "{used} bytes");
}

/// Bytes from the lowest one that `f` wrote to the top of the stack, control block included.
fn measure(f: fn()) -> usize {
    let (send, receive) = mpsc::channel();
    let mut coroutine = Coroutine::with_class(ROOM, move || {
        let bounds = stack::bounds().unwrap();
        paint(bounds.limit);
        f();
        send.send(bounds.top - lowest_touched(bounds.limit)).unwrap();
    })
    .unwrap();
    assert!(coroutine.resume());
    receive.recv().unwrap()
}

/// Paints from `limit` up to its own frame.
#[inline(never)]
fn paint(limit: usize) {
    /// Below the stack pointer, and not to be touched (the ABI's red zone).
    const RED_ZONE: usize = 128;
    let bytes = arch::stack_pointer() - RED_ZONE - limit;
    // SAFETY: fills memory that is below every frame in use, without a frame of its own.
    unsafe {
        asm!(
            "rep stosb",
            inout("rdi") limit => _,
            inout("rcx") bytes => _,
            in("al") PAINT,
            options(nostack, preserves_flags),
        );
    }
}

#[inline(never)]
fn lowest_touched(limit: usize) -> usize {
    let mut at = limit;
    // SAFETY: from the limit up to this very frame, which is not all paint.
    while unsafe { (at as *const u8).read_volatile() } == PAINT {
        at += 1;
    }
    at
}

fn format() {
    assert_eq!(format!("{:?} {:.3}", [1, 2], 1.5), "[1, 2] 1.500");
}

/// The deepest text that serde_json takes by default, of objects, as most are.
fn parse() -> serde_json::Value {
    let text = r#"{"a":"#.repeat(127) + "1" + &"}".repeat(127);
    serde_json::from_str(&text).unwrap()
}

/// What `f` gives, made on a stack that is not measured.
fn elsewhere<T: Send>(f: fn() -> T) -> T {
    std::thread::scope(|scope| scope.spawn(f).join().unwrap())
}

fn regex() {
    let pattern = r"(?i)\b(?:[a-z0-9._%+-]+)@(?:[\p{L}\d-]+\.)+(com|org|[a-z]{2,})\b";
    let mail = regex::Regex::new(pattern).unwrap();
    assert!(mail.is_match("write to first.last@mail.example.org, please"));
}

fn panic_with_backtrace() {
    assert!(std::panic::catch_unwind(|| panic!("as asked")).is_err());
}

fn resolve() {
    assert!(("localhost", 1).to_socket_addrs().unwrap().next().is_some());
}

fn sqlite() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch("create table t (a); insert into t values (1), (2)").unwrap();
    let sum = "with s as (select a from t union all select a + 1 from t)
        select sum(a) from s where a in (select a from t order by a desc) group by 1 = 1";
    assert_eq!(connection.query_row(sum, [], |row| row.get::<_, i64>(0)).unwrap(), 5);
}

fn tokio() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert_eq!(runtime.block_on(async { tokio::spawn(async { 5 }).await.unwrap() }), 5);
}
