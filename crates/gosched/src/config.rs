//! How the runtime starts.

pub use gosched_sched::ConfigError;

/// Where goroutines' thread-locals live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tls {
    /// Each goroutine has its own. The default, and what makes [`go`](crate::go) a safe function.
    #[default]
    Own,
    /// Those of whatever thread runs it. Cheaper, and not sound; see [`Config::tls_shared`].
    Shared,
}

/// How the runtime is to start: for the author of the binary; a library leaves it alone.
///
/// `GOSCHED` and `GOMAXPROCS` in the environment win over it: they are the operator's word.
///
/// ```
/// gosched::Config::new().procs(2).start().unwrap();
/// assert_eq!(gosched::runtime::gomaxprocs(0), 2);
/// assert!(gosched::Config::new().start().is_err()); // it runs already
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a configuration does nothing until `start`"]
pub struct Config {
    inner: gosched_sched::Config,
}

impl Config {
    /// The defaults.
    pub fn new() -> Config {
        Config::default()
    }

    /// How many goroutines run at once (GOMAXPROCS); 0 means the default, see
    /// [`gomaxprocs`](crate::runtime::gomaxprocs).
    pub fn procs(self, procs: usize) -> Config {
        Config { inner: self.inner.procs(procs) }
    }

    /// Bytes of stack that goroutines have at least, rounded up to a size class.
    pub fn stack_size(self, bytes: usize) -> Config {
        Config { inner: self.inner.stack_size(bytes) }
    }

    /// Goroutines use the thread-locals of whatever thread runs them.
    ///
    /// About 20 ns cheaper a switch and 4 KiB smaller a goroutine. Operators can ask for it with
    /// `GOSCHED=tls=shared`, at their own risk.
    ///
    /// # Safety
    /// * No code that runs in goroutines keeps a reference to a thread-local, or a value that is
    ///   not `Send` because of one, across anything that may wait. The compiler may do so on its
    ///   own: it caches the addresses of thread-locals.
    pub unsafe fn tls_shared(self) -> Config {
        // SAFETY: by the caller.
        Config { inner: unsafe { self.inner.tls_shared() } }
    }

    /// How long a goroutine computes before others get their turn: 10 ms by default, at least
    /// 100 us.
    pub fn slice(self, slice: std::time::Duration) -> Config {
        Config { inner: self.inner.slice(slice) }
    }

    /// Whether computing goroutines are stopped by signal. Off is the world before Go 1.14, where
    /// one loop starves all others of its processor.
    pub fn async_preemption(self, on: bool) -> Config {
        Config { inner: self.inner.async_preemption(on) }
    }

    /// Whether notice is taken of NUMA nodes and shared caches, where a machine has several: work is
    /// looked for, and threads are woken, near by first. On unless it is said. `GOSCHED=numa=0`;
    /// `GOSCHED=numa=pin` ties the threads to nodes besides. Go takes no notice of them.
    pub fn numa(self, on: bool) -> Config {
        Config { inner: self.inner.numa(on) }
    }

    /// Whether a default GOMAXPROCS follows changes of quota and affinity mask while the program
    /// runs: on unless it is said. `GOSCHED=updatemaxprocs=0`; Go's setting of the same name.
    pub fn update_procs(self, on: bool) -> Config {
        Config { inner: self.inner.update_procs(on) }
    }

    /// Whether quotas of cgroups count for the default GOMAXPROCS: on unless it is said.
    /// `GOSCHED=containermaxprocs=0`; Go's setting of the same name.
    pub fn count_quotas(self, on: bool) -> Config {
        Config { inner: self.inner.count_quotas(on) }
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// If it has started already, by an earlier call or by a first goroutine.
    pub fn start(self) -> Result<(), ConfigError> {
        self.inner.start()
    }
}
