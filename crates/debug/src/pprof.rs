//! `/debug/pprof/`: profiles, under the names of Go's `net/http/pprof`, so that
//! `go tool pprof http://ADDR/debug/pprof/profile` finds them.

use crate::{query, trace};
use gosched::pprof::{self, Profile};
use gosched::sync::{Arc, Mutex, PoisonError};
use gosched_http::{Request, Response};
use std::fmt::Write as _;
use std::io::{self, Write};

/// How long a CPU profile takes unless somebody says. Go's.
const SECONDS: f64 = 30.0;

/// Answers for what stands behind `/debug/pprof`.
pub(crate) fn answer(req: &Request<'_>, path: &str) -> Response {
    match path.trim_start_matches('/') {
        "" => index(),
        "cmdline" => command_line(),
        "profile" => cpu(req),
        "trace" => trace::answer(req),
        name => match Profile::by_name(name) {
            Some(profile) => named(req, profile),
            None => Response::new(404).body("no such profile; /debug/pprof/ has a list\n"),
        },
    }
}

fn index() -> Response {
    let mut list = String::new();
    for profile in Profile::ALL {
        let (name, count) = (profile.name(), profile.count());
        // Writing to a string does not fail.
        let _ =
            writeln!(list, "<tr><td>{count}<td><a href=\"/debug/pprof/{name}?debug=1\">{name}</a>");
    }
    let page = include_str!("pprof.html").replace("{profiles}", &list);
    Response::text(page).header("Content-Type", "text/html; charset=utf-8")
}

/// The program and its arguments, with zeroes between them.
fn command_line() -> Response {
    let words: Vec<_> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    Response::text(words.join("\0"))
}

fn named(req: &Request<'_>, profile: Profile) -> Response {
    if query::value(req, "seconds").is_some() {
        return Response::new(400).body("seconds: only for profile and trace\n");
    }
    let debug = query::value(req, "debug").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut bytes = Vec::new();
    match profile.write_to(&mut bytes, debug) {
        Ok(()) if debug == 0 => file(bytes, profile.name()),
        Ok(()) => Response::text(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => Response::new(500).body(format!("no profile: {error}\n")),
    }
}

/// The goroutine of the connection waits while the profile is made.
fn cpu(req: &Request<'_>) -> Response {
    let time = match query::seconds(req, SECONDS) {
        Ok(time) => time,
        Err(refusal) => return refusal,
    };
    if req.method() == "HEAD" {
        return file(Vec::new(), "profile");
    }
    let written = Shared::default();
    if let Err(error) = pprof::start_cpu_profile(written.clone()) {
        let status = if error.kind() == io::ErrorKind::ResourceBusy { 409 } else { 500 };
        return Response::new(status).body(format!("no profile can be begun: {error}\n"));
    }
    gosched::time::sleep(time);
    match gosched::blocking(pprof::stop_cpu_profile) {
        Ok(()) => file(written.take(), "profile"),
        Err(error) => Response::new(500).body(format!("no profile: {error}\n")),
    }
}

fn file(bytes: Vec<u8>, name: &str) -> Response {
    Response::bytes(bytes)
        .header("Content-Disposition", &format!("attachment; filename=\"{name}\""))
        .header("X-Content-Type-Options", "nosniff")
}

/// Bytes that two have.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
