//! Everything that walks or changes libc's list of threads, at once.

use crate::harness::{BLOCKS, PATIENCE, coroutine, in_each};
use crate::modules::{Library, Model};
use gosched_base::Rng;
use gosched_fiber::{Coroutine, pool, suspend};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LASTS: Duration = Duration::from_secs(3);
/// On a machine that is too busy for all of it to happen in that time.
const LASTS_AT_MOST: Duration = PATIENCE.checked_div(2).unwrap();

/// How often each thing happened.
#[derive(Debug, Default)]
struct Counts {
    loads: AtomicUsize,
    forks: AtomicUsize,
    setgids: AtomicUsize,
    ends: AtomicUsize,
    drops: AtomicUsize,
}

impl Counts {
    /// Whether everything happened often enough to be beside everything else.
    fn are_enough(&self) -> bool {
        let Counts { loads, forks, setgids, ends, drops } = self;
        [(loads, 3), (forks, 10), (setgids, 10), (ends, 500), (drops, 1)]
            .into_iter()
            .all(|(count, least)| count.load(SeqCst) >= least)
    }
}

struct Run {
    seed: u64,
    stop: AtomicBool,
    counts: Counts,
}

impl Run {
    fn repeat(
        self: &Arc<Run>,
        number: u64,
        mut step: impl FnMut(&Run, &mut Rng) + Send + 'static,
    ) -> JoinHandle<()> {
        let run = self.clone();
        std::thread::spawn(move || {
            let mut rng = Rng::new(run.seed + number);
            while !run.stop.load(SeqCst) {
                step(&run, &mut rng);
            }
        })
    }
}

fn load_and_unload(run: &Run, rng: &mut Rng) {
    let model = if rng.below(2) == 0 { Model::Initial } else { Model::Dynamic };
    let Some(library) = Library::load(model) else { return };
    for _ in 0..rng.below(20) {
        let mut c = coroutine(move || {
            assert_eq!(library.get(), 42);
            library.put(9);
            suspend();
            assert_eq!(library.get(), 19);
        });
        assert!(!c.resume());
        assert!(c.resume());
    }
    library.unload();
    run.counts.loads.fetch_add(1, SeqCst);
}

/// A child process, from a fiber or a plain thread.
fn fork(run: &Run, rng: &mut Rng) {
    if rng.below(2) == 0 {
        crate::fork::check_exit_code();
    } else {
        let mut c = coroutine(crate::fork::check_exit_code);
        assert!(c.resume());
    }
    run.counts.forks.fetch_add(1, SeqCst);
    std::thread::sleep(Duration::from_millis(5));
}

fn set_group(run: &Run, _: &mut Rng) {
    crate::setid::setgid();
    run.counts.setgids.fetch_add(1, SeqCst);
    std::thread::sleep(Duration::from_millis(3));
}

/// Makes, resumes, ends and drops coroutines in a random order.
fn shuffle(live: &mut Vec<Coroutine>, run: &Run, rng: &mut Rng) {
    if live.len() < 200 && rng.below(3) > 0 {
        live.push(coroutine(|| {
            let text = format!("{:?}", std::thread::current().id());
            suspend();
            assert_eq!(text, format!("{:?}", std::thread::current().id()));
        }));
        return;
    }
    if live.is_empty() {
        return;
    }
    let which = rng.below(live.len() as u32) as usize;
    if live[which].resume() {
        live.swap_remove(which);
        run.counts.ends.fetch_add(1, SeqCst);
    } else if rng.below(200) == 0 {
        live.swap_remove(which);
        run.counts.drops.fetch_add(1, SeqCst);
    }
}

#[test]
fn libraries_children_groups_and_coroutines_at_once() {
    in_each(BLOCKS, "stress::libraries_children_groups_and_coroutines_at_once", |_| {
        let seed = u64::from(std::process::id());
        println!("seed {seed}");
        let run = Arc::new(Run { seed, stop: AtomicBool::new(false), counts: Counts::default() });
        pool::start().expect("a thread");
        let mut threads =
            vec![run.repeat(1, load_and_unload), run.repeat(2, fork), run.repeat(3, set_group)];
        for number in 4..6 {
            let mut live = Vec::new();
            threads.push(run.repeat(number, move |run, rng| shuffle(&mut live, run, rng)));
        }
        let start = Instant::now();
        let goes_on = |run: &Run| {
            let time = start.elapsed();
            time < LASTS || (time < LASTS_AT_MOST && !run.counts.are_enough())
        };
        while goes_on(&run) && threads.iter().all(|t| !t.is_finished()) {
            std::thread::sleep(Duration::from_millis(10));
        }
        run.stop.store(true, SeqCst);
        threads.into_iter().for_each(|t| t.join().expect("no thread of it fails"));
        println!("{:?}", run.counts);
        assert!(run.counts.are_enough(), "seed {seed}: {:?}", run.counts);
    });
}
