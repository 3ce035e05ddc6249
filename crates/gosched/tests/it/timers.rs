//! Timers and tickers: no message of an earlier setting, whoever waits and however.

use gosched::channel::{Receiver, Select, TryRecvError, never};
use gosched::time::{Ticker, Timer, timeout};
use gosched::{go, run, select};
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_micros(100);
const HOUR: Duration = Duration::from_secs(3600);

/// Runs `f` on a plain thread, then in a goroutine.
fn on_both(f: fn()) {
    f();
    run(f);
}

/// The ways in which one waits for a timer.
const WAITS: [fn(&Receiver<Instant>) -> Instant; 4] = [
    |c| c.recv().unwrap(),
    |c| c.recv_timeout(HOUR).unwrap(),
    |c| {
        select! {
            recv(c) -> time => time.unwrap(),
            recv(never::<u8>()) -> _ => unreachable!(),
        }
    },
    |c| {
        let mut select = Select::new();
        select.recv(c);
        assert_eq!(select.ready(), 0);
        c.recv().unwrap()
    },
];

#[test]
fn it_delivers_once_and_not_early() {
    on_both(|| {
        for wait in WAITS {
            let set = Instant::now();
            let timer = Timer::new(SOON);
            let due = wait(timer.c());
            assert!(due >= set + SOON && Instant::now() >= due);
            assert_eq!(timer.c().try_recv(), Err(TryRecvError::Empty));
            assert!(!timer.stop());
        }
    });
}

#[test]
fn stop_and_reset_take_the_message_that_nobody_received() {
    on_both(|| {
        let timer = Timer::new(Duration::ZERO);
        assert!(timer.stop());
        assert_eq!(timer.c().try_recv(), Err(TryRecvError::Empty));
        assert!(!timer.stop());
        assert!(!timer.reset(Duration::ZERO));
        assert!(timer.reset(HOUR));
        assert_eq!(timer.c().try_recv(), Err(TryRecvError::Empty));
        assert!(timer.reset(Duration::MAX));
        assert!(timer.stop());
    });
}

#[test]
fn who_waits_sees_an_earlier_setting() {
    on_both(|| {
        for (at_first, wait) in WAITS.into_iter().flat_map(|w| [(HOUR, w), (Duration::MAX, w)]) {
            let timer = Arc::new(Timer::new(at_first));
            let waiters = [false, true].map(|is_stopped| {
                let timer = Timer::new(at_first);
                if is_stopped {
                    timer.stop();
                }
                let timer = Arc::new(timer);
                let waits = Arc::clone(&timer);
                (timer, go(move || wait(waits.c())))
            });
            for (timer, waiter) in waiters {
                // So that it waits most of the time.
                gosched::thread::sleep(SOON);
                timer.reset(SOON);
                waiter.join().unwrap();
            }
            let plain = std::thread::spawn({
                let timer = Arc::clone(&timer);
                move || wait(timer.c())
            });
            gosched::thread::sleep(SOON);
            timer.reset(SOON);
            plain.join().unwrap();
        }
    });
}

/// Each setting's message is received or undone, never both, by receivers and setters that race.
#[test]
fn every_setting_is_received_or_undone() {
    const ROUNDS_MIN: usize = 2000;
    const EACH_MIN: usize = 40;
    let timer = Arc::new(Timer::new(HOUR));
    let (received, undone) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let receivers: Vec<_> = (0..3)
        .map(|i| {
            let (timer, received) = (timer.clone(), received.clone());
            let (stop, stopped) = gosched::channel::bounded::<()>(0);
            let receive = move || loop {
                select! {
                    recv(timer.c()) -> _ => received.fetch_add(1, SeqCst),
                    recv(stopped) -> _ => break,
                };
            };
            let ended: Box<dyn FnOnce()> = if i == 0 {
                let thread = std::thread::spawn(receive);
                Box::new(move || thread.join().unwrap())
            } else {
                let goroutine = go(receive);
                Box::new(move || goroutine.join().unwrap())
            };
            (stop, ended)
        })
        .collect();
    let mut rounds = 0;
    // Who comes first depends on who has a CPU: until both have often been.
    while rounds < ROUNDS_MIN || received.load(SeqCst).min(undone.load(SeqCst)) < EACH_MIN {
        let round = rounds;
        rounds += 1;
        let d = Duration::from_micros(round as u64 % 40);
        undone.fetch_add(usize::from(timer.reset(d)), SeqCst);
        (0..round % 30 * 100).for_each(|_| std::hint::spin_loop());
        if round % 16 == 0 {
            std::thread::sleep(SOON);
        }
    }
    undone.fetch_add(usize::from(timer.stop()), SeqCst);
    for (stop, ended) in receivers {
        drop(stop);
        ended();
    }
    let (received, undone) = (received.load(SeqCst), undone.load(SeqCst));
    assert_eq!(received + undone, rounds + 1, "{received} received, {undone} undone");
}

#[test]
fn a_ticker_leaves_out_what_was_missed_and_keeps_its_phase() {
    on_both(|| {
        let period = Duration::from_millis(1);
        let ticker = Ticker::new(period);
        let first = ticker.c().recv().unwrap();
        let mut last = first;
        for missed in [0, 5, 0, 2] {
            gosched::thread::sleep(period * missed);
            let tick = ticker.c().recv().unwrap();
            let since = (tick - first).as_nanos();
            assert_eq!(since % period.as_nanos(), 0, "{since} ns after the first");
            assert!(tick > last && Instant::now() >= tick);
            // What is due by now, but for what has come since, was left out.
            let next = ticker.c().recv().unwrap();
            assert!(next > tick && next >= last + period * missed);
            last = next;
        }
    });
}

#[test]
fn a_ticker_stops_and_ticks_anew() {
    on_both(|| {
        let ticker = Ticker::new(Duration::from_nanos(1));
        ticker.stop();
        assert_eq!(ticker.c().try_recv(), Err(TryRecvError::Empty));
        ticker.reset(SOON);
        ticker.c().recv().unwrap();
        ticker.c().recv().unwrap();
        ticker.reset(Duration::MAX);
        assert_eq!(ticker.c().try_recv(), Err(TryRecvError::Empty));
    });
}

#[test]
fn a_ticker_without_a_period_panics() {
    assert!(catch_unwind(|| Ticker::new(Duration::ZERO)).is_err());
    let ticker = Ticker::new(HOUR);
    assert!(catch_unwind(|| ticker.reset(Duration::ZERO)).is_err());
}

#[test]
fn a_timeout_passes_results_and_panics_on() {
    on_both(|| {
        assert_eq!(timeout(Duration::MAX, || 7), Ok(7));
        let (_hold, held) = gosched::channel::bounded::<()>(0);
        assert!(timeout(SOON, move || held.recv()).is_err());
        let payload =
            catch_unwind(|| timeout(HOUR, || panic!("in time"))).map(|never: Result<(), _>| never);
        assert_eq!(payload.unwrap_err().downcast_ref(), Some(&"in time"));
    });
}
