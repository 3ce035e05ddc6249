//! All queues together, on several threads, until all that is rare has happened often enough.
//!
//! Each worker owns a ring and does at random what a scheduler does with it. Tokens circulate: what
//! a worker takes it runs and puts somewhere again. A token that two workers run at a time is found
//! on the spot, one that was lost or doubled by the count at the end.

use std::{
    env, thread,
    time::{Duration, Instant, SystemTime},
};

use gosched_base::Rng;

use super::task::{Node, Task, ids, nodes};
use crate::{Batch, Global, HALF, Injector, Overflow, Owner, Popped, Ring};

const WORKERS: usize = 3;
const TASKS: usize = if cfg!(miri) { 100 } else { 1500 };
const TIME_MAX: Duration = Duration::from_millis(800);
/// Rounds of each worker; what bounds the test with Miri, where time is no measure.
const ROUNDS_MAX: usize = if cfg!(miri) { 100 } else { usize::MAX };
/// How often each of the rare things has to happen for the test to mean something.
const RARE_MIN: usize = if cfg!(miri) { 0 } else { 100 };

/// What the workers share.
struct World<'n> {
    rings: [Ring<Task<'n>>; WORKERS],
    global: Global<Task<'n>>,
    injector: Injector<Task<'n>>,
}

/// How often a worker saw the rare things happen.
#[derive(Clone, Copy, Debug, Default)]
struct Seldom {
    steals: usize,
    steals_of_next: usize,
    overflows: usize,
    fronts: usize,
    splits: usize,
}

impl Seldom {
    fn plus(self, other: Seldom) -> Seldom {
        Seldom {
            steals: self.steals + other.steals,
            steals_of_next: self.steals_of_next + other.steals_of_next,
            overflows: self.overflows + other.overflows,
            fronts: self.fronts + other.fronts,
            splits: self.splits + other.splits,
        }
    }

    /// How often the rarest happened.
    fn least(self) -> usize {
        let seldom = [self.steals, self.steals_of_next, self.overflows, self.fronts, self.splits];
        seldom.into_iter().min().unwrap_or(0)
    }
}

/// One thread with its ring.
struct Worker<'w, 'n> {
    world: &'w World<'n>,
    owner: Owner<'w, Task<'n>>,
    rng: Rng,
    seldom: Seldom,
}

impl<'w, 'n> Worker<'w, 'n> {
    /// Does one thing.
    fn step(&mut self) {
        match self.rng.below(64) {
            0 => self.take_out_of_service(),
            1 => self.take_injected(),
            2..4 => self.take_share(),
            4 => self.take_all_one_by_one(),
            16 => self.split_off(),
            5..10 => self.steal(),
            10..16 => self.steal_next(),
            _ => self.pop(),
        }
    }

    /// Runs `task` and makes it runnable again, in one of the ways there are.
    fn run(&mut self, task: Task<'n>) {
        task.run();
        match self.rng.below(16) {
            0 => self.world.global.push_back(task),
            1 => self.world.injector.push(task),
            2..5 => self.put_front(task),
            5..8 => self.put_back(task),
            _ => {
                if let Some(displaced) = self.owner.push_next(task) {
                    self.put_back(displaced);
                }
            }
        }
    }

    fn put_back(&mut self, task: Task<'n>) {
        if let Err(Overflow(batch)) = self.owner.push_back(task) {
            self.seldom.overflows += 1;
            self.world.global.append(batch);
        }
    }

    fn put_front(&mut self, task: Task<'n>) {
        match self.owner.push_front(task) {
            Ok(()) => self.seldom.fronts += 1,
            Err(full) => self.world.global.push_front(full.0),
        }
    }

    fn put_all(&mut self, mut batch: Batch<Task<'n>>) {
        self.owner.push_back_batch(&mut batch, usize::MAX);
        self.world.global.append(batch);
    }

    fn pop(&mut self) {
        if let Some(Popped::Next(task) | Popped::Ring(task)) = self.owner.pop() {
            self.run(task);
        }
    }

    fn steal(&mut self) {
        let victim = self.victim();
        if let Some(task) = victim.steal_half(&mut self.owner) {
            self.seldom.steals += 1;
            self.run(task);
        }
    }

    fn steal_next(&mut self) {
        let victim = self.victim();
        let seen = victim.peek_next();
        (0..self.rng.below(100)).for_each(|_| std::hint::spin_loop());
        if let Some(task) = seen.and_then(|seen| victim.steal_next(seen)) {
            self.seldom.steals_of_next += 1;
            self.run(task);
        }
    }

    /// Any ring, the own one included.
    fn victim(&mut self) -> &'w Ring<Task<'n>> {
        &self.world.rings[self.rng.below(WORKERS as u32) as usize]
    }

    fn take_share(&mut self) {
        let share = self.world.global.take_share(WORKERS);
        self.put_all(share);
    }

    fn take_all_one_by_one(&mut self) {
        self.world.global.take_all().for_each(|task| self.put_back(task));
    }

    fn take_injected(&mut self) {
        let injected = self.world.injector.take_all();
        self.put_all(injected);
    }

    fn split_off(&mut self) {
        let second_half = self.owner.split_off(HALF);
        self.seldom.splits += usize::from(!second_half.is_empty());
        self.world.global.append(second_half);
    }

    fn take_out_of_service(&mut self) {
        let drained = self.owner.drain();
        self.world.global.append(drained);
    }
}

/// The seed of this run: GOSCHED_SEED, or the time.
fn seed() -> u64 {
    let given = env::var("GOSCHED_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.expect("it is after 1970").as_nanos() as u64
    })
}

/// Runs worker `index` until the time is over.
fn work(world: &World<'_>, index: usize, seed: u64) -> Seldom {
    // SAFETY: only this worker owns the ring of its index.
    let owner = unsafe { world.rings[index].owner() };
    let rng = Rng::new(seed.wrapping_add(index as u64));
    let mut worker = Worker { world, owner, rng, seldom: Seldom::default() };
    let end = Instant::now() + TIME_MAX;
    for round in 0..ROUNDS_MAX {
        worker.step();
        if round % 256 == 0 && Instant::now() > end {
            break;
        }
    }
    worker.seldom
}

/// The numbers of all tokens that are in some queue.
fn collect(world: &World<'_>) -> Vec<usize> {
    let mut all = ids(world.global.take_all());
    all.extend(ids(world.injector.take_all()));
    for ring in &world.rings {
        let len = ring.len();
        // SAFETY: the workers have ended.
        let left = ids(unsafe { ring.owner() }.drain());
        assert_eq!(left.len(), len);
        assert!(ring.is_empty());
        all.extend(left);
    }
    all.sort_unstable();
    all
}

/// Puts tokens of `nodes` into the global queue of a new world.
fn world_of(nodes: &[Node]) -> World<'_> {
    let world = World {
        rings: [0, u32::MAX - 10_000, 1 << 31].map(Ring::starting_at),
        global: Global::new(),
        injector: Injector::new(),
    };
    nodes.iter().for_each(|node| world.global.push_back(Task(node)));
    world
}

#[test]
fn nothing_is_lost_or_doubled() {
    let seed = seed();
    eprintln!("GOSCHED_SEED={seed}");
    let nodes = nodes(TASKS);
    let world = world_of(&nodes);

    let mut seldom = Seldom::default();
    for turn in 0.. {
        seldom = work_together(&world, seed.wrapping_add(turn << 32), seldom);
        // A machine that is busy elsewhere may not come to all of it in the time of one turn.
        if seldom.least() >= RARE_MIN {
            break;
        }
    }
    assert_eq!(collect(&world), (0..TASKS).collect::<Vec<_>>(), "lost or doubled");
    eprintln!("{seldom:?}");
}

/// Runs all workers until their time is over; `before` and what they saw.
fn work_together(world: &World<'_>, seed: u64, before: Seldom) -> Seldom {
    thread::scope(|scope| {
        let workers = [0, 1, 2].map(|index| scope.spawn(move || work(world, index, seed)));
        workers.into_iter().map(|worker| worker.join().unwrap()).fold(before, Seldom::plus)
    })
}
