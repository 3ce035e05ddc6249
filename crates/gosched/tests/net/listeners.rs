//! Listeners.

use super::pairs::random;
use gosched::go;
use gosched::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use std::io::{ErrorKind, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A listener of either kind, and how to reach it.
trait Listener: Send + Sync + Sized + 'static {
    type Stream: Send + 'static;
    fn open() -> Self;
    fn accept_one(&self) -> Result<Self::Stream>;
    fn connector(&self) -> Box<dyn Fn() -> Result<Self::Stream> + Send>;
    fn close(&self);
    fn set_deadline(&self, deadline: Option<Instant>);
}

impl Listener for TcpListener {
    type Stream = TcpStream;
    fn open() -> Self {
        TcpListener::bind("127.0.0.1:0").unwrap()
    }
    fn accept_one(&self) -> Result<TcpStream> {
        self.accept().map(|(stream, _)| stream)
    }
    fn connector(&self) -> Box<dyn Fn() -> Result<TcpStream> + Send> {
        let address = self.local_addr().unwrap();
        Box::new(move || TcpStream::connect(address))
    }
    fn close(&self) {
        self.close();
    }
    fn set_deadline(&self, deadline: Option<Instant>) {
        self.set_deadline(deadline);
    }
}

/// A path that no other test uses.
pub(crate) fn fresh_path() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("gosched-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
    std::env::temp_dir().join(name)
}

impl Listener for UnixListener {
    type Stream = UnixStream;
    fn open() -> Self {
        UnixListener::bind(fresh_path()).unwrap()
    }
    fn accept_one(&self) -> Result<UnixStream> {
        self.accept().map(|(stream, _)| stream)
    }
    fn connector(&self) -> Box<dyn Fn() -> Result<UnixStream> + Send> {
        let path = self.local_addr().unwrap().as_pathname().unwrap().to_owned();
        Box::new(move || UnixStream::connect(&path))
    }
    fn close(&self) {
        self.close();
    }
    fn set_deadline(&self, deadline: Option<Instant>) {
        self.set_deadline(deadline);
    }
}

macro_rules! for_each_listener {
    ($($name:ident),* $(,)?) => {
        mod tcp {
            $(
                #[gosched::test(timeout = "300s")]
                fn $name() {
                    super::$name::<gosched::net::TcpListener>();
                }
            )*
        }
        mod unix {
            $(
                #[gosched::test(timeout = "300s")]
                fn $name() {
                    super::$name::<gosched::net::UnixListener>();
                }
            )*
        }
    };
}

for_each_listener! {
    many_accept_from_one,
    closing_ends_all_accepts,
    closing_against_accepting,
    an_accept_times_out,
}

fn many_accept_from_one<L: Listener>() {
    const CLIENTS_MIN: u64 = 400;
    let listener = Arc::new(L::open());
    let accepted = Arc::new(AtomicU64::new(0));
    // Acceptors that had a connection.
    let successful = Arc::new(AtomicU64::new(0));
    let acceptors: Vec<_> = (0..8)
        .map(|_| {
            let (listener, accepted) = (listener.clone(), accepted.clone());
            let successful = successful.clone();
            go(move || {
                let mut count = 0;
                while listener.accept_one().is_ok() {
                    count += 1;
                    successful.fetch_add(u64::from(count == 1), Relaxed);
                    accepted.fetch_add(1, Relaxed);
                }
                count
            })
        })
        .collect();
    let connect = listener.connector();
    let mut made = 0;
    // More than that if one was always there first.
    while made < CLIENTS_MIN || successful.load(Relaxed) < 2 {
        // Half of them come when all wait, the others when somebody still accepts.
        while made % 2 == 0 && accepted.load(Relaxed) < made {
            gosched::thread::yield_now();
        }
        drop(connect().unwrap());
        made += 1;
    }
    // What is left in the queue a close would throw away.
    while accepted.load(Relaxed) < made {
        gosched::thread::sleep(Duration::from_micros(100));
    }
    listener.close();
    let counts: Vec<u64> = acceptors.into_iter().map(|acceptor| acceptor.join().unwrap()).collect();
    assert_eq!(counts.iter().sum::<u64>(), made, "{counts:?}");
}

fn closing_ends_all_accepts<L: Listener>() {
    let listener = Arc::new(L::open());
    let acceptors = [(); 5].map(|()| {
        let listener = listener.clone();
        go(move || listener.accept_one().map(drop))
    });
    super::pairs::until_waiting(&acceptors);
    let connect = listener.connector();
    listener.close();
    for acceptor in acceptors {
        assert_eq!(acceptor.join().unwrap().unwrap_err().kind(), ErrorKind::NotConnected);
    }
    assert_eq!(connect().map(drop).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

fn closing_against_accepting<L: Listener>() {
    const ROUNDS_MIN: u32 = 300;
    const EACH_MIN: u32 = 10;
    let (mut accepted, mut refused) = (0_u32, 0_u32);
    for round in 0_u32.. {
        // Until both have often been first.
        if round >= ROUNDS_MIN && accepted.min(refused) > EACH_MIN {
            break;
        }
        let listener = Arc::new(L::open());
        let connect = listener.connector();
        let acceptor = go({
            let listener = listener.clone();
            move || listener.accept_one().map(drop)
        });
        let client = go(move || {
            if round % 2 == 0 {
                gosched::thread::sleep(Duration::from_micros(random(50)));
            }
            connect().map(drop)
        });
        if round % 3 != 0 {
            gosched::thread::sleep(Duration::from_micros(random(100)));
        }
        listener.close();
        match acceptor.join().unwrap() {
            Ok(()) => accepted += 1,
            Err(error) => {
                // The kernel's own word where the look came after the shutdown.
                let kind = error.kind();
                assert!(
                    matches!(kind, ErrorKind::NotConnected | ErrorKind::InvalidInput),
                    "{error}"
                );
                refused += 1;
            }
        }
        let _ = client.join().unwrap();
    }
}

fn an_accept_times_out<L: Listener>() {
    let listener = L::open();
    listener.set_deadline(Some(Instant::now() + Duration::from_millis(2)));
    assert_eq!(listener.accept_one().map(drop).unwrap_err().kind(), ErrorKind::TimedOut);
    listener.set_deadline(None);
    let connect = listener.connector();
    let client = go(move || connect().map(drop));
    listener.accept_one().unwrap();
    client.join().unwrap().unwrap();
}

#[gosched::test(timeout = "300s")]
fn incoming_connections_are_an_iterator() {
    let listener = TcpListener::bind("localhost:0").unwrap();
    let address = listener.local_addr().unwrap();
    let clients = go(move || [(); 3].map(|()| TcpStream::connect(address).unwrap()));
    assert_eq!(listener.incoming().take(3).filter(Result::is_ok).count(), 3);
    clients.join().unwrap();
}
