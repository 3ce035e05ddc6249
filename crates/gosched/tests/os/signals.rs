use gosched::channel::TryRecvError;
use gosched::go;
use gosched::signal::{Signal, ignore, notify, reset};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

fn send(signal: Signal) {
    // SAFETY: no memory is passed.
    unsafe { libc::kill(std::process::id() as i32, signal.as_raw()) };
}

#[gosched::test(timeout = "300s")]
fn each_channel_gets_what_it_asked_for() {
    let both = notify(&[Signal::USER1, Signal::WINDOW]);
    let one = notify(&[Signal::WINDOW]);
    let waiter = go(move || [(); 2].map(|()| both.recv().unwrap()));
    send(Signal::WINDOW);
    assert_eq!(one.recv().unwrap(), Signal::WINDOW);
    send(Signal::USER1);
    let mut got = waiter.join().unwrap();
    got.sort();
    assert_eq!(got, [Signal::USER1, Signal::WINDOW]);
    assert_eq!(one.try_recv(), Err(TryRecvError::Empty));
}

static BEFORE: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: i32) {
    BEFORE.fetch_add(1, SeqCst);
}

/// The handler that was there before is there again after a reset, and after nobody listens.
#[gosched::test(timeout = "300s")]
fn what_was_there_before_comes_back() {
    let action: extern "C" fn(i32) = count;
    // SAFETY: the handler only counts.
    unsafe { libc::signal(libc::SIGUSR2, action as *const () as usize) };
    let until = |count: u32| {
        while BEFORE.load(SeqCst) < count {
            gosched::thread::yield_now();
        }
    };
    send(Signal::USER2);
    until(1);

    let signals = notify(&[Signal::USER2]);
    send(Signal::USER2);
    assert_eq!(signals.recv().unwrap(), Signal::USER2);
    assert_eq!(BEFORE.load(SeqCst), 1);
    reset(&[Signal::USER2]);
    assert!(signals.recv().is_err(), "it gets them no more");
    send(Signal::USER2);
    until(2);

    ignore(&[Signal::USER2]);
    send(Signal::USER2);
    assert_eq!(BEFORE.load(SeqCst), 2);
    reset(&[Signal::USER2]);

    drop(notify(&[Signal::USER2]));
    send(Signal::USER2);
    until(3);
}

#[gosched::test(timeout = "300s")]
fn our_own_signals_cannot_be_asked_for() {
    for number in [libc::SIGURG, libc::SIGSEGV, libc::SIGPROF, libc::SIGKILL, 32, 33, 0, 65, -1] {
        assert_eq!(Signal::from_raw(number), None, "{number}");
    }
    assert_eq!(Signal::from_raw(libc::SIGHUP), Some(Signal::HANGUP));
    assert_eq!(Signal::HANGUP.to_string(), "SIGHUP");
}

/// A storm of signals against goroutines that compute, wait and allocate. None is taken for one of
/// the runtime's, and none of the runtime's comes on the channel.
#[gosched::test(timeout = "300s")]
fn a_storm_disturbs_nobody() {
    let signals = notify(&[Signal::CHILD]);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            go(|| {
                let mut sum = 0_u64;
                for i in 0..20_000_u64 {
                    sum += std::hint::black_box(vec![i; 8]).iter().sum::<u64>();
                    if i % 64 == 0 {
                        gosched::thread::yield_now();
                    }
                }
                sum
            })
        })
        .collect();
    let mut got = 0;
    for _ in 0..300 {
        send(Signal::CHILD);
        assert_eq!(signals.recv().unwrap(), Signal::CHILD);
        got += 1;
    }
    assert_eq!(got, 300);
    for worker in workers {
        assert_eq!(worker.join().unwrap(), 8 * (19_999 * 20_000 / 2));
    }
}

/// Channels come and go, and signals are ignored and restored, while one thread sends them.
#[gosched::test(timeout = "300s")]
fn asking_and_resetting_while_they_come() {
    static OVER: AtomicU32 = AtomicU32::new(0);
    let first = notify(&[Signal::CONTINUE]);
    let sender = std::thread::spawn(|| {
        let mut sent = 0;
        while OVER.load(SeqCst) == 0 {
            send(Signal::CONTINUE);
            sent += 1;
        }
        sent
    });
    let mut got = 0;
    for round in 0..400 {
        let signals = notify(&[Signal::CONTINUE]);
        got += usize::from(signals.recv().is_ok());
        match round % 4 {
            0 => drop(signals),
            1 => ignore(&[Signal::CONTINUE]),
            _ => {}
        }
    }
    drop(first);
    OVER.store(1, SeqCst);
    assert!(sender.join().unwrap() >= 400);
    assert_eq!(got, 400);
}

/// Whoever asks while another resets has a channel that is closed, or one on which signals come.
#[gosched::test(timeout = "300s")]
fn asking_against_resetting() {
    let signal = Signal::from_raw(40).expect("a signal of the program's own");
    let action: extern "C" fn(i32) = count_real_time;
    // SAFETY: the handler only counts.
    unsafe { libc::signal(signal.as_raw(), action as *const () as usize) };
    static ROUND: AtomicU32 = AtomicU32::new(0);
    static DONE: AtomicU32 = AtomicU32::new(0);
    const OVER: u32 = u32::MAX;
    let reseter = std::thread::spawn(move || {
        for round in 1.. {
            while ROUND.load(SeqCst) < round {
                std::thread::yield_now();
            }
            if ROUND.load(SeqCst) == OVER {
                return;
            }
            reset(&[signal]);
            DONE.store(round, SeqCst);
        }
    });
    let (mut asked_last, mut reset_last) = (0, 0);
    while asked_last < 1000 || reset_last < 1000 {
        let round = ROUND.fetch_add(1, SeqCst) + 1;
        // About as long as the other one takes to see it.
        (0..round % 64).for_each(|_| std::hint::spin_loop());
        let signals = notify(&[signal]);
        while DONE.load(SeqCst) < round {
            gosched::thread::yield_now();
        }
        if signals.try_recv() == Err(TryRecvError::Disconnected) {
            reset_last += 1;
            continue;
        }
        asked_last += 1;
        send(signal);
        // One that was lost would let this wait for ever.
        assert_eq!(signals.recv().unwrap(), signal);
        reset(&[signal]);
    }
    ROUND.store(OVER, SeqCst);
    reseter.join().unwrap();
    assert_eq!(REAL_TIME.load(SeqCst), 0, "each has come on a channel");
}

static REAL_TIME: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_real_time(_: i32) {
    REAL_TIME.fetch_add(1, SeqCst);
}

/// A signal that has come already when it is ignored does not undo that.
#[gosched::test(timeout = "300s")]
fn what_is_ignored_while_it_comes_does_nothing() {
    let signal = Signal::from_raw(41).expect("a signal of the program's own");
    for _ in 0..300 {
        let signals = notify(&[signal]);
        send(signal);
        // Its action is to end the program.
        ignore(&[signal]);
        while signals.recv().is_ok() {}
        send(signal);
    }
}
