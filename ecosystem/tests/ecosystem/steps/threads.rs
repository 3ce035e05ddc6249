//! Threads and thread-locals of std.

use crate::carry::{Carriers, coroutine, hop};
use crate::step::Step;
use gosched_fiber::host;
use gosched_fiber::tls::{self, Kind};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::Duration;

pub(crate) const STEPS: &[Step] = &[
    Step::inside("thread spawn and join", spawn_and_join),
    Step::inside("thread scope", scope),
    Step::inside("thread spawned on a fiber is a plain one", spawned_thread_is_plain),
    Step::inside("thread park and unpark", park),
    Step::inside("thread sleep and condition variable", sleep_and_condvar),
    Step::inside("mpsc channel", mpsc_channel),
    Step::inside("thread id is stable", id_is_stable),
    Step::outside("thread ids are unique", ids_are_unique),
    Step::inside("thread-local borrowed across a move", borrowed_across_a_move),
    Step::outside("thread-locals are fresh on reuse", fresh_on_reuse),
    Step::outside("thread-local destructors run once", destructors_run_once),
    Step::outside("thread-local made in a destructor", made_in_a_destructor),
    Step::outside("println from many fibers", println_from_many),
    Step::outside("stdout locked across a move", stdout_locked),
];

fn spawn_and_join() {
    let handle = thread::spawn(|| (1..=100).sum::<i32>());
    hop();
    assert_eq!(handle.join().unwrap(), 5050);
    let panicking = thread::Builder::new().name("doomed".into()).spawn(|| panic!("as asked"));
    hop();
    assert!(panicking.unwrap().join().is_err());
}

fn scope() {
    let mut words = vec!["one".to_owned(), "two".to_owned()];
    let total = AtomicUsize::new(0);
    thread::scope(|scope| {
        for word in &mut words {
            scope.spawn(|| {
                word.push('!');
                total.fetch_add(word.len(), SeqCst);
            });
        }
        hop();
    });
    assert_eq!((words.concat().as_str(), total.into_inner()), ("one!two!", 8));
}

fn spawned_thread_is_plain() {
    let handle = thread::spawn(|| {
        assert!(host::current().is_null(), "a new thread carries nothing");
        // SAFETY: the hosts of this program are `Carrier`s, which have a pointer there.
        assert_eq!(unsafe { host::current_word::<{ size_of::<host::Host>() }>() }, 0);
        let mut inner = coroutine(|| {
            gosched_fiber::suspend();
            assert_eq!(host::current().is_null(), tls::kind() == Kind::Threads);
        });
        assert!(!inner.resume());
        assert!(host::current().is_null());
        assert!(inner.resume());
    });
    hop();
    handle.join().unwrap();
}

fn park() {
    let woken = Arc::new(AtomicBool::new(false));
    let (me, flag) = (thread::current(), woken.clone());
    hop();
    let waker = thread::spawn(move || {
        thread::sleep(Duration::from_millis(5));
        flag.store(true, SeqCst);
        me.unpark();
    });
    while !woken.load(SeqCst) {
        thread::park();
    }
    waker.join().unwrap();
    // A token that is given before a move is there after it.
    thread::current().unpark();
    hop();
    thread::park();
}

fn sleep_and_condvar() {
    let pair = Arc::new((Mutex::new(0), Condvar::new()));
    let theirs = pair.clone();
    let other = thread::spawn(move || {
        thread::sleep(Duration::from_millis(5));
        *theirs.0.lock().unwrap() = 3;
        theirs.1.notify_all();
    });
    hop();
    let waited = pair.1.wait_while(pair.0.lock().unwrap(), |n| *n != 3).unwrap();
    hop();
    assert!(pair.0.try_lock().is_err(), "the guard moved with the coroutine");
    drop(waited);
    other.join().unwrap();
    let guard = pair.0.lock().unwrap();
    let result = pair.1.wait_timeout(guard, Duration::from_millis(1));
    assert_eq!(*result.unwrap().0, 3);
}

fn mpsc_channel() {
    let (sender, receiver) = mpsc::channel();
    let handle = thread::spawn(move || {
        for i in 0..100 {
            sender.send(i).unwrap();
        }
    });
    hop();
    let got: Vec<i32> = receiver.iter().take(50).collect();
    hop();
    assert!(got.into_iter().chain(receiver.iter()).eq(0..100));
    handle.join().unwrap();
}

fn id_is_stable() {
    let (id, handle) = (thread::current().id(), thread::current());
    for _ in 0..5 {
        hop();
        assert_eq!(thread::current().id(), id);
        assert_eq!(handle.id(), id);
    }
}

fn ids_are_unique(carriers: &Carriers) {
    let ids = Arc::new(Mutex::new(Vec::new()));
    let make = || {
        let ids = ids.clone();
        coroutine(move || {
            ids.lock().unwrap().push(thread::current().id());
            hop();
        })
    };
    for _ in 0..50 {
        carriers.drive(vec![make()]);
    }
    carriers.drive((0..50).map(|_| make()).collect());
    let ids = ids.lock().unwrap();
    let mine = thread::current().id();
    let distinct: HashSet<_> = ids.iter().chain([&mine]).collect();
    assert_eq!(distinct.len(), 101);
}

fn borrowed_across_a_move() {
    thread_local! {
        static LIST: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    }
    LIST.with(|list| {
        let mut borrowed = list.borrow_mut();
        borrowed.push(1);
        hop();
        borrowed.push(2);
        assert!(LIST.with(|same| same.try_borrow().is_err()));
    });
    hop();
    assert_eq!(LIST.take(), [1, 2]);
}

fn fresh_on_reuse(carriers: &Carriers) {
    thread_local! {
        static INITIAL: Cell<u64> = const { Cell::new(11) };
        static LAZY: RefCell<String> = RefCell::new("lazy".to_owned());
    }
    for _ in 0..100 {
        carriers.run(|| {
            assert_eq!(INITIAL.replace(12), 11);
            LAZY.with_borrow_mut(|text| {
                assert_eq!(text, "lazy");
                text.push('!');
            });
            hop();
            assert_eq!(INITIAL.get(), 12);
            assert_eq!(LAZY.take(), "lazy!");
        });
    }
}

/// Counts its own drops.
struct Counted(&'static AtomicUsize);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn destructors_run_once(carriers: &Carriers) {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static CONST: Counted = const { Counted(&DROPS) };
        static LAZY: Counted = Counted(&DROPS);
    }
    let make = || {
        coroutine(|| {
            CONST.with(|_| ());
            hop();
            LAZY.with(|_| ());
        })
    };
    for i in 1..=20 {
        carriers.drive(vec![make()]);
        assert_eq!(DROPS.load(SeqCst), 2 * i);
    }
    carriers.drive((0..20).map(|_| make()).collect());
    assert_eq!(DROPS.load(SeqCst), 80);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        carriers.run(|| {
            LAZY.with(|_| ());
            hop();
            panic!("as asked");
        });
    }));
    assert!(result.is_err());
    assert_eq!(DROPS.load(SeqCst), 81);
}

fn made_in_a_destructor(carriers: &Carriers) {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LATE: Counted = const { Counted(&DROPS) };
        static EARLY: MakesAnother = const { MakesAnother };
    }
    struct MakesAnother;
    impl Drop for MakesAnother {
        fn drop(&mut self) {
            LATE.with(|_| ());
            assert_eq!(std::panic::catch_unwind(|| 5).unwrap(), 5);
            drop(thread::spawn(|| ()));
        }
    }
    for i in 1..=20 {
        carriers.run(|| EARLY.with(|_| hop()));
        assert_eq!(DROPS.load(SeqCst), i);
    }
}

fn println_from_many(carriers: &Carriers) {
    const FIBERS: usize = 16;
    const LINES: usize = 8;
    let path = std::env::temp_dir().join(format!("gosched-println-{}", std::process::id()));
    let file = std::fs::File::create(&path).unwrap();
    let saved = redirect_stdout(&file);
    let write = |i: usize| {
        coroutine(move || {
            for line in 0..LINES {
                print!("fiber {i} ");
                println!("line {line}");
                hop();
            }
        })
    };
    carriers.drive((0..FIBERS).map(write).collect());
    redirect_stdout(&saved);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: HashSet<&str> = text.lines().collect();
    let expected: Vec<String> =
        (0..FIBERS * LINES).map(|n| format!("fiber {} line {}", n / LINES, n % LINES)).collect();
    assert_eq!(lines, expected.iter().map(String::as_str).collect());
}

/// The lock's owner is a thread by its id.
fn stdout_locked(carriers: &Carriers) {
    carriers.run(|| {
        let locked = std::io::stdout().lock();
        let other = thread::spawn(|| drop(std::io::stdout().lock()));
        hop();
        drop(std::io::stdout().lock());
        thread::sleep(Duration::from_millis(5));
        assert!(!other.is_finished());
        hop();
        drop(locked);
        other.join().unwrap();
    });
}

/// Makes standard output go to `to`; returns where it went before.
fn redirect_stdout(to: &impl AsRawFd) -> OwnedFd {
    std::io::stdout().flush().unwrap();
    // SAFETY: duplicates an open descriptor.
    let before = unsafe { libc::dup(1) };
    // SAFETY: both are open; nobody else relies on what standard output is during this step.
    assert!(before >= 0 && unsafe { libc::dup2(to.as_raw_fd(), 1) } == 1);
    // SAFETY: just made, and nobody else's.
    unsafe { OwnedFd::from_raw_fd(before) }
}
