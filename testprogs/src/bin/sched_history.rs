//! A load of everything, drawn from a seed, and a look at the history of what the scheduler did:
//! `sched_history SEED SECONDS`. Prints what happened how often, or what is wrong, and then fails; so
//! it does if the load has not ended after that many seconds.

use std::env;
use std::hint::spin_loop;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use gosched::channel::{Receiver, Sender, bounded};
use gosched::{__private, blocking, go, runtime, thread};

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 33) % bound
    }

    /// Another one, for a goroutine.
    fn fork(&mut self) -> Random {
        Random(self.next() | 1)
    }
}

/// A phase in which only few kinds of acts are done, so that each kind of wake is alone at times.
type Act = fn(&mut Random);

const ACTS: [Act; 15] = [
    |random| (0..random.below(8)).for_each(|_| thread::yield_now()),
    |random| (0..random.below(4)).for_each(|_| runtime::gosched()),
    |random| thread::sleep(Duration::from_micros(random.below(200))),
    |random| thread::park_timeout(Duration::from_micros(random.below(100))),
    spawn_uneven,
    spawn_detached,
    spawn_and_compute,
    wake_each_other,
    send_and_receive,
    |random| blocking(|| compute(random.below(2_000))),
    |random| compute(random.below(8_000)),
    other_stacks,
    locked,
    stop_the_world,
    put_to_rest,
];

fn main() -> ExitCode {
    let mut numbers = env::args().skip(1).map(|text| text.parse().expect("a number"));
    let seed = numbers.next().expect("a seed");
    let patience = Duration::from_secs(numbers.next().expect("seconds"));
    let mut random = Random(u64::wrapping_mul(seed, 2) + 1);
    std::thread::spawn(move || give_up_after(patience));
    (0..40).for_each(|_| phase(&mut random));
    // A joiner is woken shortly before its goroutine is counted as ended.
    while runtime::num_goroutine() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    match __private::check_history() {
        Ok(summary) => {
            summary.figures().iter().for_each(|(name, count)| println!("{name}={count}"));
            ExitCode::SUCCESS
        }
        Err(broken) => {
            println!("broken: {broken}");
            ExitCode::FAILURE
        }
    }
}

/// Long after any load has ended on a busy machine: somebody was never woken.
fn give_up_after(patience: Duration) {
    std::thread::sleep(patience);
    println!("broken: it hangs");
    std::process::exit(1);
}

/// A few goroutines that do one or two kinds of acts, and a plain thread that does things to
/// them.
fn phase(random: &mut Random) {
    let kinds = [random.below(15) as usize, random.below(15) as usize];
    let workers: Vec<_> = (0..1 + random.below(6))
        .map(|_| {
            let mut own = random.fork();
            go(move || {
                for _ in 0..10 {
                    let kind = kinds[own.below(2) as usize];
                    ACTS[kind](&mut own);
                }
            })
        })
        .collect();
    let mut own = random.fork();
    let plain = std::thread::spawn(move || from_outside(&mut own));
    workers.into_iter().for_each(|worker| worker.join().expect("it does not panic"));
    plain.join().expect("it does not panic");
}

fn compute(rounds: u64) {
    (0..rounds).for_each(|_| spin_loop());
}

/// What a plain thread does: makes goroutines, and wakes them.
fn from_outside(random: &mut Random) {
    for _ in 0..random.below(12) {
        let rounds = random.below(500);
        let parked = go(move || {
            thread::park();
            compute(rounds);
        });
        compute(random.below(3_000));
        parked.thread().unpark();
        if random.below(2) == 0 {
            parked.join().expect("it does not panic");
        }
    }
}

/// One makes the work of all.
fn spawn_uneven(random: &mut Random) {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = random.below(40) as usize;
    let handles: Vec<_> = (0..count)
        .map(|_| {
            let (ended, rounds) = (ended.clone(), random.below(600));
            go(move || {
                compute(rounds);
                ended.fetch_add(1, SeqCst);
            })
        })
        .collect();
    handles.into_iter().for_each(|handle| handle.join().expect("it does not panic"));
    assert_eq!(ended.load(SeqCst), count);
}

fn spawn_detached(random: &mut Random) {
    for _ in 0..random.below(6) {
        let yields = random.below(3);
        drop(go(move || (0..yields).for_each(|_| thread::yield_now())));
    }
}

/// The new one can only run beside this one.
fn spawn_and_compute(random: &mut Random) {
    let child = go(|| compute(50));
    compute(random.below(20_000));
    child.join().expect("it does not panic");
}

fn wake_each_other(random: &mut Random) {
    let (turns, me) = (random.below(6), thread::current());
    let turn = Arc::new(AtomicUsize::new(0));
    let theirs = turn.clone();
    let other = go(move || {
        for _ in 0..turns {
            while theirs.load(SeqCst) % 2 == 0 {
                thread::park();
            }
            theirs.fetch_add(1, SeqCst);
            me.unpark();
        }
    });
    for _ in 0..turns {
        turn.fetch_add(1, SeqCst);
        other.thread().unpark();
        compute(random.below(1_000));
        while turn.load(SeqCst) % 2 == 1 {
            thread::park();
        }
    }
    other.join().expect("it does not panic");
}

fn send_and_receive(random: &mut Random) {
    let (sender, receiver): (Sender<u64>, Receiver<u64>) = bounded(random.below(3) as usize);
    let count = random.below(20);
    let reader = go(move || receiver.iter().sum::<u64>());
    for i in 0..count {
        sender.send(i).expect("it receives");
    }
    drop(sender);
    assert_eq!(reader.join().expect("it does not panic"), (0..count).sum::<u64>());
}

/// First runs that have to wait for a stack.
fn other_stacks(random: &mut Random) {
    let mut builder = || thread::Builder::new().stack_size(64 << 10 << random.below(6));
    let rounds = 300;
    let spawn = |builder: thread::Builder| builder.spawn(move || compute(rounds));
    let others: Vec<_> = [builder(), builder()].map(spawn).into_iter().collect();
    thread::yield_now();
    others.into_iter().for_each(|other| {
        other.expect("a goroutine").join().expect("it does not panic");
    });
}

/// Gives way while it is locked to its thread.
fn locked(random: &mut Random) {
    runtime::lock_os_thread();
    (0..random.below(4)).for_each(|_| thread::yield_now());
    thread::sleep(Duration::from_micros(random.below(50)));
    runtime::unlock_os_thread();
}

fn stop_the_world(random: &mut Random) {
    match random.below(4) {
        0 => runtime::gc(),
        _ => compute(random.below(2_000)),
    }
}

/// Processors rest for a moment, as they do where machines share a CPU.
fn put_to_rest(random: &mut Random) {
    __private::put_to_rest(random.below(4) as usize);
    (0..random.below(20)).for_each(|_| thread::yield_now());
    compute(random.below(2_000));
    __private::put_to_rest(0);
}
