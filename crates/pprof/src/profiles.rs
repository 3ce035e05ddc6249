//! Profiles of what is there now, or has happened since the start.

use crate::encode::{Encoder, Kind};
use crate::{text, waits};
use gosched_sched::profile::{Seen, each_goroutine};
use gosched_sched::{Labels, counters};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

/// A profile with a name. Go's `pprof.Lookup(name)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// Every goroutine that there is, by stack.
    Goroutine,
    /// The threads that run goroutines. As Go's it has no stacks any more.
    ThreadCreate,
    /// Waits, by who has waited. Empty without [`set_block_profile_rate`](crate::set_block_profile_rate).
    Block,
    /// Waits for locks, by who has let go of them. Empty without
    /// [`set_mutex_profile_fraction`](crate::set_mutex_profile_fraction).
    Mutex,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 4] =
        [Profile::Block, Profile::Goroutine, Profile::Mutex, Profile::ThreadCreate];

    /// Go's name of it.
    ///
    /// ```
    /// use gosched_pprof::Profile;
    ///
    /// assert_eq!(Profile::Block.name(), "block");
    /// assert_eq!(Profile::by_name("threadcreate"), Some(Profile::ThreadCreate));
    /// assert_eq!(Profile::by_name("heap"), None);
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Goroutine => "goroutine",
            Profile::ThreadCreate => "threadcreate",
            Profile::Block => "block",
            Profile::Mutex => "mutex",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Profile> {
        Profile::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// How many there are in it: goroutines, threads, or stacks that have waited. Go's `Profile.Count`.
    ///
    /// ```
    /// let goroutines = gosched_sched::run(|| gosched_pprof::Profile::Goroutine.count());
    /// assert!(goroutines >= 1);
    /// ```
    #[must_use]
    pub fn count(self) -> usize {
        match self {
            Profile::Goroutine => gosched_sched::num_goroutine(),
            Profile::ThreadCreate => counters().machines as usize,
            Profile::Block => waits::waits(true).len(),
            Profile::Mutex => waits::waits(false).len(),
        }
    }

    /// Writes it: with `debug` 0 the compressed file that `go tool pprof` opens, with 1 text that is
    /// grouped by stack, and goroutines with 2 as in a dump. Go's `Profile.WriteTo`.
    ///
    /// ```
    /// use gosched_pprof::Profile;
    ///
    /// let text = gosched_sched::run(|| {
    ///     let mut text = Vec::new();
    ///     Profile::Goroutine.write_to(&mut text, 1).map(|()| text)
    /// })?;
    /// assert!(text.starts_with(b"goroutine profile: total "));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_to(self, out: &mut impl Write, debug: u32) -> io::Result<()> {
        match (self, debug) {
            (Profile::Goroutine, 2..) => dump(out),
            (Profile::Goroutine, _) => Goroutines::now().write(out, debug),
            (Profile::ThreadCreate, _) => write_threads(out, debug),
            (Profile::Block, 0) => waits::write(true, out),
            (Profile::Mutex, 0) => waits::write(false, out),
            (Profile::Block, _) => write_waits(true, out),
            (Profile::Mutex, _) => write_waits(false, out),
        }
    }
}

/// A dump of goroutines, for who wants bytes.
fn dump(out: &mut impl Write) -> io::Result<()> {
    struct Bytes<'a, W> {
        out: &'a mut W,
        error: Option<io::Error>,
    }
    impl<W: Write> fmt::Write for Bytes<'_, W> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let written = self.out.write_all(text.as_bytes());
            written.map_err(|error| self.error = Some(error)).map_err(|()| fmt::Error)
        }
    }
    let mut bytes = Bytes { out, error: None };
    let written = gosched_sched::dump(&mut bytes);
    match (written, bytes.error) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(io::Error::other(error)),
    }
}

/// What goroutines have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group {
    pcs: Box<[usize]>,
    /// What is said of those without frames, and where they were spawned.
    without: Option<(&'static str, Option<(&'static str, u32)>)>,
    labels: Option<Arc<Labels>>,
}

/// The many first.
struct Goroutines(Vec<(Group, i64)>);

impl Goroutines {
    fn now() -> Goroutines {
        let mut groups = HashMap::<Group, i64>::new();
        each_goroutine(|seen: &Seen<'_>| {
            let pcs = seen.frames.pcs();
            let what = if seen.is_elsewhere { "[on another thread]" } else { "[not begun]" };
            let group = Group {
                pcs: pcs.into(),
                without: pcs.is_empty().then_some((what, seen.site)),
                labels: seen.labels.clone(),
            };
            *groups.entry(group).or_default() += 1;
        });
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Goroutines(groups)
    }

    fn write(&self, out: &mut impl Write, debug: u32) -> io::Result<()> {
        if debug > 0 {
            return self.write_text(out);
        }
        const KIND: Kind = ("goroutine", "count");
        let mut encoder = Encoder::new(&[KIND], KIND, 1);
        for (Group { pcs, without, labels }, count) in &self.0 {
            match without {
                None => encoder.add(pcs, &[*count], labels.as_deref()),
                Some((what, site)) => {
                    encoder.add_named(what, site.unwrap_or_default(), &[*count], labels.as_deref());
                }
            }
        }
        encoder.write(out)
    }

    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let total: i64 = self.0.iter().map(|(_, count)| count).sum();
        writeln!(out, "goroutine profile: total {total}")?;
        for (Group { pcs, without, labels }, count) in &self.0 {
            write!(out, "{count}")?;
            text::addresses(out, pcs)?;
            if let Some(labels) = labels {
                let pairs: Vec<_> = labels.iter().map(|(k, v)| format!("{k:?}:{v:?}")).collect();
                writeln!(out, "# labels: {{{}}}", pairs.join(", "))?;
            }
            if let Some((what, site)) = without {
                let (file, line) = site.unwrap_or_default();
                writeln!(out, "#\t{what}\tcreated by\t{file}:{line}")?;
            }
            text::frames(out, pcs)?;
        }
        Ok(())
    }
}

fn write_threads(out: &mut impl Write, debug: u32) -> io::Result<()> {
    let total = counters().machines as i64;
    if debug > 0 {
        writeln!(out, "threadcreate profile: total {total}\n{total} @\n#\t0x0\n")
    } else {
        const KIND: Kind = ("threadcreate", "count");
        let mut encoder = Encoder::new(&[KIND], KIND, 1);
        encoder.add_named("[threads that run goroutines]", ("", 0), &[total], None);
        encoder.write(out)
    }
}

/// Go's form. Its cycles are nanoseconds here.
fn write_waits(is_block: bool, out: &mut impl Write) -> io::Result<()> {
    let name = if is_block { "contention" } else { "mutex" };
    writeln!(out, "--- {name}:\ncycles/second=1000000000")?;
    if !is_block {
        writeln!(out, "sampling period={}", waits::mutex_fraction())?;
    }
    for wait in waits::waits(is_block) {
        let pcs = text::without_runtime(&wait.pcs);
        write!(out, "{} {}", wait.ns, wait.count)?;
        text::addresses(out, pcs)?;
        text::frames(out, pcs)?;
    }
    Ok(())
}
