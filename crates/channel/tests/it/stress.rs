//! Everything at once, with a seed: no message is lost, and none is dropped twice.

use crate::support::{Running, Who};
use gosched_base::Rng;
use gosched_channel::{Receiver, Select, Sender, bounded, select, unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// What happened, and how often.
#[derive(Debug, Default)]
struct Seen {
    made: AtomicUsize,
    dropped: AtomicUsize,
    sent: AtomicUsize,
    received: AtomicUsize,
    send_timed_out: AtomicUsize,
    recv_timed_out: AtomicUsize,
    select_sent: AtomicUsize,
    select_received: AtomicUsize,
    select_timed_out: AtomicUsize,
    abandoned: AtomicUsize,
    closed: AtomicUsize,
}

impl Seen {
    /// How often the rarest of the rare happened.
    fn least(&self) -> usize {
        let rare = [
            &self.send_timed_out,
            &self.recv_timed_out,
            &self.select_sent,
            &self.select_received,
            &self.select_timed_out,
            &self.abandoned,
            &self.closed,
        ];
        rare.into_iter().map(|counter| counter.load(Relaxed)).min().unwrap_or_default()
    }
}

fn add(counter: &AtomicUsize) {
    counter.fetch_add(1, Relaxed);
}

/// A message that counts. It is larger than a word, and knows when it is torn.
struct Message([usize; 5], Arc<Seen>);

impl Message {
    fn new(seen: &Arc<Seen>) -> Message {
        let n = seen.made.fetch_add(1, Relaxed);
        Message([n; 5], seen.clone())
    }

    fn check(self) {
        assert!(self.0.iter().all(|n| *n == self.0[0]), "torn: {:?}", self.0);
        add(&self.1.received);
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        add(&self.1.dropped);
    }
}

fn a_moment(rng: &mut Rng) -> Duration {
    Duration::from_micros(rng.below(60).into())
}

fn count_sent(seen: &Seen, was_sent: bool) {
    add(if was_sent { &seen.sent } else { &seen.closed });
}

fn send(rng: &mut Rng, ends: &[Sender<Message>; 2], seen: &Arc<Seen>) {
    let message = || Message::new(seen);
    match rng.below(6) {
        0 => count_sent(seen, ends[0].send(message()).is_ok()),
        1 => match ends[1].send_timeout(message(), a_moment(rng)) {
            Err(error) if error.is_timeout() => add(&seen.send_timed_out),
            result => count_sent(seen, result.is_ok()),
        },
        2 => count_sent(seen, ends[0].try_send(message()).is_ok()),
        3 => select! {
            send(ends[0], message()) -> sent => {
                add(&seen.select_sent);
                count_sent(seen, sent.is_ok());
            }
            send(ends[1], message()) -> sent => count_sent(seen, sent.is_ok()),
        },
        4 => select! {
            send(ends[1], message()) -> sent => count_sent(seen, sent.is_ok()),
            send(ends[0], message()) -> sent => count_sent(seen, sent.is_ok()),
            default(a_moment(rng)) => add(&seen.select_timed_out),
        },
        _ => abandon(seen, &mut |select| {
            select.send(&ends[0]);
        }),
    }
}

fn recv(rng: &mut Rng, ends: &[Receiver<Message>; 2], seen: &Arc<Seen>) {
    let check = |result: Result<Message, _>| {
        result.is_ok_and(|m| {
            m.check();
            true
        })
    };
    match rng.below(6) {
        0 => {
            check(ends[0].recv());
        }
        1 => match ends[1].recv_timeout(a_moment(rng)) {
            Err(error) if error.is_timeout() => add(&seen.recv_timed_out),
            Err(_) => add(&seen.closed),
            Ok(message) => message.check(),
        },
        2 => ends[0].try_iter().for_each(Message::check),
        3 => select! {
            recv(ends[0]) -> m => if check(m) { add(&seen.select_received) },
            recv(ends[1]) -> m => if check(m) { add(&seen.select_received) },
        },
        4 => select! {
            recv(ends[1]) -> m => { check(m); }
            recv(ends[0]) -> m => { check(m); }
            default(a_moment(rng)) => add(&seen.select_timed_out),
        },
        _ => abandon(seen, &mut |select| {
            select.recv(&ends[0]);
        }),
    }
}

/// Chooses an operation and panics instead of completing it.
fn abandon<'a>(seen: &Seen, add_case: &mut dyn FnMut(&mut Select<'a>)) {
    let mut select = Select::new();
    add_case(&mut select);
    if let Ok(operation) = select.try_select() {
        add(&seen.abandoned);
        let panics = AssertUnwindSafe(|| {
            let _operation = operation;
            // Without the hook's output.
            resume_unwind(Box::new(()));
        });
        assert!(catch_unwind(panics).is_err());
    }
}

fn run(seed: u64, capacities: [Option<usize>; 2], seen: &Arc<Seen>) {
    const ROUNDS: usize = 600;
    let [(s1, r1), (s2, r2)] = capacities.map(|capacity| capacity.map_or_else(unbounded, bounded));
    let mut rng = Rng::new(seed);
    let parties: Vec<Running<()>> = (0..12)
        .map(|party| {
            let who = if party % 4 == 3 { Who::Thread } else { Who::Goroutine };
            let mut rng = Rng::new(rng.next_u64());
            let seen = seen.clone();
            if party % 2 == 0 {
                let ends = [s1.clone(), s2.clone()];
                who.start(move || (0..ROUNDS).for_each(|_| send(&mut rng, &ends, &seen)))
            } else {
                let ends = [r1.clone(), r2.clone()];
                who.start(move || (0..ROUNDS).for_each(|_| recv(&mut rng, &ends, &seen)))
            }
        })
        .collect();
    drop((s1, s2, r1, r2));
    parties.into_iter().for_each(Running::join);
}

#[test]
fn nothing_is_lost() {
    let seed = std::env::var("GOSCHED_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
    });
    println!("GOSCHED_TEST_SEED={seed}");
    let all = [Some(0), Some(1), Some(3), None];
    let seen = Arc::new(Seen::default());
    let count = |counter: &AtomicUsize| counter.load(Relaxed);
    for turn in 0.. {
        for (n, one) in all.into_iter().enumerate() {
            for two in all {
                run(seed + 4 * turn + n as u64, [one, two], &seen);
                assert_eq!(count(&seen.made), count(&seen.dropped), "{one:?}, {two:?}: {seen:?}");
                assert!(count(&seen.received) <= count(&seen.sent), "{one:?}, {two:?}: {seen:?}");
            }
        }
        // What a slow machine did not come to is tried again.
        if seen.least() >= 10 {
            break;
        }
    }
    println!("{seen:?}");
}
