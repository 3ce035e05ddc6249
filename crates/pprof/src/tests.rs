use crate::encode::Encoder;
use crate::{Profile, proto, samples, start_cpu_profile_at, stop_cpu_profile, waits, with_labels};
use flate2::read::GzDecoder;
use gosched_sched::{Config, SpawnOptions, preemptions, spawn};
use prost::Message;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One CPU profile at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A file in memory.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn decode(file: &[u8]) -> proto::Profile {
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).expect("it is compressed");
    proto::Profile::decode(&*bytes).expect("it is a profile")
}

impl proto::Profile {
    /// The names of the functions of a sample, the innermost first.
    fn stack(&self, sample: &proto::Sample) -> Vec<&str> {
        let locations = sample.location_ids.iter().map(|id| &self.locations[*id as usize - 1]);
        let lines = locations.flat_map(|location| &location.lines);
        let functions = lines.map(|line| &self.functions[line.function_id as usize - 1]);
        functions.map(|function| &*self.strings[function.name as usize]).collect()
    }

    /// What the values of the samples add up to that have a function whose name ends so, and this label.
    fn sum(&self, which: usize, function: &str, label: Option<(&str, &str)>) -> i64 {
        let string = |id: i64| &*self.strings[id as usize];
        let is_labelled = |sample: &proto::Sample| {
            label.is_none_or(|label| {
                sample.labels.iter().any(|l| (string(l.key), string(l.text)) == label)
            })
        };
        let is_in = |sample: &&proto::Sample| {
            self.stack(sample).iter().any(|name| name.ends_with(function)) && is_labelled(sample)
        };
        self.samples.iter().filter(is_in).map(|sample| sample.values[which]).sum()
    }
}

fn go<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> gosched_sched::JoinHandle<T> {
    // SAFETY: bounds as for `thread::spawn`.
    unsafe { spawn(f, SpawnOptions::default(), Location::caller()) }.expect("a goroutine")
}

fn start() {
    let _ = Config::new().procs(2).slice(Duration::from_micros(100)).start();
}

fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[inline(never)]
fn hot(stop: &AtomicBool) -> u64 {
    let mut x = 1_u64;
    while !stop.load(Relaxed) {
        x = black_box(x).wrapping_mul(6_364_136_223_846_793_005).rotate_left(7);
    }
    x
}

/// Signals of both kinds come to the same threads, each some thousand times a second.
#[test]
fn cpu_profile_beside_preemption() {
    const RATE: u32 = 1000;
    const PREEMPTIONS: u64 = 500;
    const CPU: Duration = Duration::from_millis(700);
    start();
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let file = File::default();
    static STOP: AtomicBool = AtomicBool::new(false);
    let (stopped, begun) = (preemptions().in_place, cpu_time());
    start_cpu_profile_at(RATE, file.clone()).expect("it starts");
    let computing: Vec<_> = (0..8)
        .map(|i| {
            let labels: &[_] = if i == 0 { &[("which", "first")] } else { &[] };
            go(move || with_labels(labels, || go(|| hot(&STOP)))).join().expect("it returns")
        })
        .collect();
    while preemptions().in_place - stopped < PREEMPTIONS || cpu_time() - begun < CPU {
        std::thread::sleep(Duration::from_millis(1));
    }
    STOP.store(true, Relaxed);
    let ended = computing.into_iter().map(|one| one.join().expect("it returns"));
    assert!(ended.into_iter().all(|x| x != 0));
    let used = cpu_time() - begun;
    stop_cpu_profile().expect("it is written");
    let profile = decode(&file.0.lock().unwrap());
    let (hot, first) =
        (profile.sum(0, "::hot", None), profile.sum(0, "::hot", Some(("which", "first"))));
    // Others of the process's threads compute too; a part of it goes to handlers and the scheduler.
    let all: i64 = profile.samples.iter().map(|sample| sample.values[0]).sum();
    let expected = used.as_millis() as i64;
    assert!(hot > expected / 4 && all < 2 * expected, "{hot} and {all} of {expected}");
    assert!(first > 0 && first < hot, "{first} of {hot}");
    assert_eq!(profile.sum(1, "::hot", None), hot * i64::from(1_000_000_000 / RATE));
    assert_eq!(profile.period, i64::from(1_000_000_000 / RATE));
    // A walk that lost its way would not come to the goroutine's beginning.
    let ends = profile.samples.iter().filter(|sample| {
        let stack = profile.stack(sample);
        stack.iter().any(|name| name.ends_with("::hot"))
            && stack.contains(&"gosched_sched::exit::goroutine_main")
    });
    let whole: i64 = ends.map(|sample| sample.values[0]).sum();
    assert!(whole > hot * 9 / 10, "{whole} of {hot}");
}

#[inline(never)]
fn parks() {
    gosched_sched::park();
    black_box(());
}

#[test]
fn goroutines_with_labels_of_their_spawners() {
    start();
    let outer =
        go(|| with_labels(&[("a", "1"), ("b", "2")], || with_labels(&[("b", "3")], || go(parks))));
    let parked = outer.join().expect("it returns");
    let mut profile = proto::Profile::default();
    while profile.sum(0, "::parks", Some(("b", "3"))) == 0 {
        let mut file = Vec::new();
        Profile::Goroutine.write_to(&mut file, 0).expect("it is written");
        profile = decode(&file);
    }
    assert_eq!(profile.sum(0, "::parks", Some(("a", "1"))), 1);
    assert_eq!(profile.sum(0, "::parks", Some(("b", "2"))), 0);
    let mut text = Vec::new();
    Profile::Goroutine.write_to(&mut text, 1).expect("it is written");
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("\n# labels: {\"a\":\"1\", \"b\":\"3\"}\n#\t0x"), "{text}");
    let mut dump = String::new();
    gosched_sched::dump(&mut dump).expect("a String takes everything");
    assert!(dump.contains("[park] {a: 1, b: 3}:\ngosched_pprof::tests::parks(...)\n"), "{dump}");
    parked.thread().unpark();
    parked.join().expect("it returns");
}

/// Labels come and go on many goroutines while samples hold them and profiles read them.
#[test]
fn labels_outlive_who_looks_at_them() {
    start();
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    start_cpu_profile_at(5000, File::default()).expect("it starts");
    let ended: u64 = (0..40)
        .map(|round| {
            let many: Vec<_> = (0..50)
                .map(|i| {
                    go(move || {
                        let id = format!("{round}-{i}");
                        let own = id.clone();
                        with_labels(&[("id", &id)], || {
                            go(move || {
                                assert_eq!(crate::labels().iter().next(), Some(("id", &*own)));
                                (0..20_000_u64).fold(0, |sum, i| black_box(sum ^ i))
                            })
                        })
                    })
                })
                .collect();
            Profile::Goroutine.write_to(&mut io::sink(), 1).expect("it is written");
            let inner = many.into_iter().map(|one| one.join().expect("it returns"));
            inner.map(|one| u64::from(one.join().is_ok())).sum::<u64>()
        })
        .sum();
    assert_eq!(ended, 2000);
    stop_cpu_profile().expect("it is written");
}

#[test]
fn short_waits_stand_for_many() {
    assert_eq!(waits::block_weight(10, 0), None);
    assert_eq!(waits::block_weight(0, 100), None);
    assert_eq!(waits::block_weight(100, 100), Some(1.0));
    let noted = (0..100_000).filter_map(|_| waits::block_weight(10, 1000));
    let noted: f64 = noted.inspect(|weight| assert_eq!(*weight, 100.0)).sum();
    assert!((80_000.0..120_000.0).contains(&noted), "{noted}");
    let noted: f64 = (0..100_000).filter_map(|_| waits::mutex_weight(8)).sum();
    assert!((90_000.0..110_000.0).contains(&noted), "{noted}");
}

#[test]
fn a_file_says_what_was_put_in() {
    gosched_unwind::prepare();
    let mut encoder = Encoder::new(&[("things", "count")], ("things", "count"), 1);
    let code = hot as *const () as usize + 2;
    encoder.add(&[code, code], &[3], Some(&gosched_sched::Labels::new(&[("k", "v")])));
    encoder.add_named("nobody", ("src/a.rs", 7), &[4], None);
    let mut file = Vec::new();
    encoder.write(&mut file).expect("it is written");
    let profile = decode(&file);
    assert_eq!(profile.strings[0], "");
    assert_eq!(profile.samples.len(), 2);
    assert_eq!(profile.sum(0, "::hot", Some(("k", "v"))), 3);
    assert_eq!(profile.sum(0, "nobody", None), 4);
    let [first, second] = [0, 1].map(|i| profile.samples[i].location_ids.clone());
    assert_eq!((first.len(), second.len()), (2, 1));
    let location = &profile.locations[first[0] as usize - 1];
    let mapping = &profile.mappings[location.mapping_id as usize - 1];
    assert!((mapping.start..mapping.limit).contains(&location.address));
    assert_eq!(location.address, code as u64 - 1);
    let line = profile.locations[second[0] as usize - 1].lines[0];
    let function = profile.functions[line.function_id as usize - 1];
    assert_eq!((line.line, &*profile.strings[function.file as usize]), (7, "src/a.rs"));
}

/// Dumps until a goroutine's paragraph has both.
fn dump_until(state: &str, function: &str) {
    let frame = format!("\ngosched_pprof::tests::{function}(...)\n");
    loop {
        let mut dump = String::new();
        gosched_sched::dump(&mut dump).expect("a String takes everything");
        let is_it = |part: &str| part.contains(state) && part.contains(&frame);
        if dump.split("\n\n").any(is_it) {
            return;
        }
    }
}

#[inline(never)]
fn spins(stop: &AtomicBool) -> u64 {
    hot(stop) | 1
}

#[inline(never)]
fn spins_frozen(stop: &AtomicBool) -> u64 {
    hot(stop) | 1
}

#[inline(never)]
fn reads(file: &mut io::PipeReader) -> usize {
    gosched_sched::blocking(|| file.read(&mut [0])).expect("it can be read") + 1
}

/// Wherever their registers were left: by the trampoline, by a handler that sleeps, by a declared call.
#[test]
fn frames_of_those_that_do_not_wait() {
    start();
    static STOP: AtomicBool = AtomicBool::new(false);
    let (mut reader, writer) = io::pipe().expect("a pipe");
    let reading = go(move || reads(&mut reader));
    dump_until("[syscall", "reads");
    drop(writer);
    assert_eq!(reading.join().expect("it returns"), 1);
    let spinning: Vec<_> = (0..4).map(|_| go(|| spins(&STOP))).collect();
    let options = SpawnOptions { shares_tls: true, ..SpawnOptions::default() };
    // SAFETY: it waits for nothing.
    let frozen = unsafe { spawn(|| spins_frozen(&STOP), options, Location::caller()) };
    dump_until("[runnable]", "spins");
    dump_until("[runnable, locked to thread]", "spins_frozen");
    STOP.store(true, Relaxed);
    assert!(spinning.into_iter().all(|one| one.join().is_ok()));
    assert!(frozen.expect("a goroutine").join().is_ok());
}

/// What a handler that came late has left may name labels that are gone.
#[test]
fn a_sample_that_came_too_late_is_not_for_the_next_profile() {
    /// Numbers that no profile has.
    const EARLIER: usize = usize::MAX - 2;
    const LATER: usize = usize::MAX;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    samples::prepare();
    samples::put(3, |sample| sample.number = EARLIER);
    samples::drain(LATER, |_| panic!("it is not for this one"));
    samples::put(5, |sample| sample.number = LATER);
    let mut seen = 0;
    samples::drain(LATER, |sample| seen += sample.periods);
    assert_eq!(seen, 5);
    samples::drain(EARLIER, |_| panic!("it was forgotten"));
}
