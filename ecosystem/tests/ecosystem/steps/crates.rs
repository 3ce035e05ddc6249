//! Crates that many programs use.

use crate::carry::{Carriers, coroutine, hop};
use crate::step::Step;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) const STEPS: &[Step] = &[
    Step::inside("regex", regex),
    Step::inside("rayon", rayon),
    Step::inside("parking_lot", parking_lot),
    Step::inside("tokio runtime inside a fiber", tokio_runtime),
    Step::inside("rusqlite connection moved", rusqlite_moved),
    Step::inside("flate2 with zlib", zlib),
    Step::inside("crossbeam-channel", crossbeam_channel),
    Step::inside("crossbeam-epoch pinned across a move", crossbeam_epoch),
    Step::inside("arc-swap guard across a move", arc_swap),
    Step::inside("rand", rand_generator),
    Step::outside("rand differs on reuse", rand_on_reuse),
    Step::outside("tracing span across a move", tracing_span),
    Step::inside("serde_json at depth 128", serde_json_deep),
];

fn regex() {
    let mail = regex::Regex::new(r"(?i)\b([\w.]+)@(\w+)\.com\b").unwrap();
    let text = "Write to A.b@example.com or c@test.com.";
    let mut found = mail.captures_iter(text);
    assert_eq!(&found.next().unwrap()[1], "A.b");
    hop();
    assert_eq!(&found.next().unwrap()[2], "test");
    let clone = mail.clone();
    assert!(thread::spawn(move || clone.is_match("x@y.com")).join().unwrap());
}

fn rayon() {
    use rayon::prelude::*;
    assert_eq!((0..100_000_u64).into_par_iter().sum::<u64>(), 4_999_950_000);
    hop();
    let mut numbers: Vec<u32> = (0..10_000).rev().collect();
    numbers.par_sort_unstable();
    hop();
    assert!(numbers.is_sorted());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let (a, b) = pool.install(|| rayon::join(|| 1, || 2));
    hop();
    drop(pool);
    assert_eq!((a, b), (1, 2));
}

fn parking_lot() {
    let pair = Arc::new((parking_lot::Mutex::new(0), parking_lot::Condvar::new()));
    let mut guard = pair.0.lock();
    let theirs = pair.clone();
    let other = thread::spawn(move || {
        *theirs.0.lock() += 1;
        theirs.1.notify_one();
    });
    hop();
    assert!(pair.0.try_lock().is_none());
    while *guard == 0 {
        pair.1.wait(&mut guard);
    }
    drop(guard);
    other.join().unwrap();
    // Its owner is a thread by the address of a thread-local.
    let reentrant = parking_lot::ReentrantMutex::new(());
    let outer = reentrant.lock();
    hop();
    let inner = reentrant.try_lock();
    assert!(inner.is_some());
    assert!(thread::scope(|s| s.spawn(|| reentrant.try_lock().is_none()).join().unwrap()));
    drop((outer, inner));
    let lock = parking_lot::RwLock::new(5);
    let read = lock.read();
    hop();
    assert_eq!((*read, lock.try_write().is_none()), (5, true));
}

fn tokio_runtime() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    hop();
    let answer = runtime.block_on(async {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let five = tokio::spawn(async { 5 }).await.unwrap();
        // The runtime's context is in a thread-local while it polls.
        hop();
        let blocking = tokio::task::spawn_blocking(|| 6).await.unwrap();
        five + blocking + tokio::spawn(echo()).await.unwrap()
    });
    assert_eq!(answer, 5 + 6 + 4);
    let entered = runtime.enter();
    hop();
    let task = tokio::spawn(async { 7 });
    drop(entered);
    assert_eq!(runtime.block_on(task).unwrap(), 7);
    hop();
    drop(runtime);
    let current = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(current.block_on(async { tokio::spawn(async { 8 }).await.unwrap() }), 8);
}

/// Sends four bytes through a socket and counts them.
async fn echo() -> usize {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    client.write_all(b"four").await.unwrap();
    let mut word = [0; 4];
    server.read_exact(&mut word).await.unwrap()
}

fn rusqlite_moved() {
    let mut connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch("create table t (a integer, b text)").unwrap();
    hop();
    let transaction = connection.transaction().unwrap();
    for i in 0..100 {
        transaction.execute("insert into t values (?1, ?2)", (i, i.to_string())).unwrap();
        if i % 40 == 0 {
            hop();
        }
    }
    transaction.commit().unwrap();
    let mut statement = connection.prepare("select a, b from t where a >= 90").unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut sum = 0;
    while let Some(row) = rows.next().unwrap() {
        sum += row.get::<_, i64>(0).unwrap();
        assert_eq!(row.get::<_, String>(1).unwrap(), row.get::<_, i64>(0).unwrap().to_string());
        if sum == 90 {
            hop();
        }
    }
    assert_eq!(sum, (90..100).sum::<i64>());
    assert!(connection.execute("insert into none values (1)", []).is_err());
}

fn zlib() {
    let text: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let (a, b) = text.split_at(50_000);
    encoder.write_all(a).unwrap();
    hop();
    encoder.write_all(b).unwrap();
    let packed = encoder.finish().unwrap();
    assert!(packed.len() < 5_000);
    let mut decoder = flate2::read::GzDecoder::new(packed.as_slice());
    let mut back = vec![0; 30_000];
    decoder.read_exact(&mut back).unwrap();
    hop();
    decoder.read_to_end(&mut back).unwrap();
    assert_eq!(back, text);
}

fn crossbeam_channel() {
    let (sender, receiver) = crossbeam_channel::bounded(2);
    let (done, end) = crossbeam_channel::unbounded();
    let other = thread::spawn(move || {
        for i in 0..100 {
            sender.send(i).unwrap();
        }
        done.send("done").unwrap();
    });
    let mut sum = 0;
    for _ in 0..50 {
        sum += receiver.recv().unwrap();
    }
    hop();
    loop {
        crossbeam_channel::select! {
            recv(receiver) -> n => match n {
                Ok(n) => sum += n,
                Err(_) => break,
            },
            default(Duration::from_secs(300)) => panic!("nothing came"),
        }
    }
    hop();
    assert_eq!((sum, end.recv()), ((0..100).sum::<i32>(), Ok("done")));
    other.join().unwrap();
}

fn crossbeam_epoch() {
    use crossbeam_epoch::{Atomic, Owned};
    let place = Atomic::new(1_u64);
    let guard = crossbeam_epoch::pin();
    let old = place.swap(Owned::new(2), SeqCst, &guard);
    hop();
    // SAFETY: unlinked above by the only writer.
    unsafe { guard.defer_destroy(old) };
    assert!(crossbeam_epoch::is_pinned());
    // SAFETY: the guard keeps it.
    assert_eq!(unsafe { place.load(SeqCst, &guard).deref() }, &2);
    drop(guard);
    hop();
    assert!(!crossbeam_epoch::is_pinned());
    crossbeam_epoch::pin().flush();
    // SAFETY: nobody else knows the place.
    drop(unsafe { place.into_owned() });
}

fn arc_swap() {
    let shared = arc_swap::ArcSwap::from_pointee("old".to_owned());
    // Up to eight guards are entries in a list that belongs to the thread.
    let guards: Vec<_> = (0..10).map(|_| shared.load()).collect();
    hop();
    shared.store(Arc::new("new".to_owned()));
    hop();
    assert!(guards.iter().all(|guard| guard.as_str() == "old"));
    drop(guards);
    hop();
    assert_eq!(shared.load_full().as_str(), "new");
}

fn rand_generator() {
    use rand::Rng;
    let mut generator = rand::rng();
    let a: u64 = generator.random();
    hop();
    let b: u64 = generator.random();
    assert_ne!(a, b);
    assert_ne!(rand::rng().random::<u64>(), b);
    assert!((1..7).contains(&rand::rng().random_range(1..7)));
}

/// A generator that stayed in a block would go on for the next user, and one that was copied from
/// an image would start anew.
fn rand_on_reuse(carriers: &Carriers) {
    let seen = Arc::new(Mutex::new(HashSet::new()));
    for i in 1..=50 {
        let theirs = seen.clone();
        carriers.run(move || {
            theirs.lock().unwrap().insert(rand::random::<u64>());
        });
        assert_eq!(seen.lock().unwrap().len(), i);
    }
}

/// Counts spans as they are entered and left, and checks that both agree.
#[derive(Clone, Default)]
struct Seen {
    entered: Arc<AtomicUsize>,
    left: Arc<AtomicUsize>,
    events: Arc<Mutex<Vec<String>>>,
}

impl<S> tracing_subscriber::Layer<S> for Seen
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    fn on_enter(&self, _: &tracing::Id, _: tracing_subscriber::layer::Context<'_, S>) {
        self.entered.fetch_add(1, SeqCst);
    }

    fn on_exit(&self, _: &tracing::Id, _: tracing_subscriber::layer::Context<'_, S>) {
        self.left.fetch_add(1, SeqCst);
    }

    fn on_event(
        &self,
        event: &tracing::Event<'_>,
        context: tracing_subscriber::layer::Context<'_, S>,
    ) {
        let spans = context.event_scope(event).into_iter().flatten();
        let names: Vec<_> = spans.map(|span| span.name()).collect();
        self.events.lock().unwrap().push(names.join("<"));
    }
}

fn tracing_span(carriers: &Carriers) {
    use tracing_subscriber::layer::SubscriberExt;
    let seen = Seen::default();
    let dispatch = tracing::Dispatch::new(tracing_subscriber::registry().with(seen.clone()));
    let work = |name: &'static str| {
        let dispatch = dispatch.clone();
        coroutine(move || {
            tracing::dispatcher::with_default(&dispatch, || {
                hop();
                let outer = tracing::info_span!("outer").entered();
                hop();
                tracing::info_span!("inner").in_scope(|| {
                    hop();
                    tracing::info!(name);
                });
                hop();
                tracing::info!(name);
                outer.exit();
                tracing::info!(name);
            });
        })
    };
    carriers.drive(vec![work("a"), work("b"), work("c")]);
    assert_eq!((seen.entered.load(SeqCst), seen.left.load(SeqCst)), (6, 6));
    let mut events = seen.events.lock().unwrap().clone();
    events.sort();
    assert_eq!(
        events,
        ["", "", "", "inner<outer", "inner<outer", "inner<outer", "outer", "outer", "outer"]
    );
}

fn serde_json_deep() {
    let text = "[".repeat(127) + "1" + &"]".repeat(127);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    hop();
    assert_eq!(value.to_string(), text);
    assert_eq!(value.clone(), value);
    hop();
    let one_more = format!("[{text}]");
    assert!(serde_json::from_str::<serde_json::Value>(&one_more).is_err());
}
