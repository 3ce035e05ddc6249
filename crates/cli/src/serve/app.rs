//! What the server answers.

use super::admission::{Admission, Full};
use super::stats;
use crate::args::ServeArgs;
use gosched::runtime;
use gosched_http::{Request, Response};
use std::hint::black_box;

/// What the heavy task adds up to.
const ADDITIONS: u64 = 10_000_000;

pub(crate) struct App {
    admission: Admission,
    goroutines_max: usize,
}

impl App {
    pub(crate) fn new(args: &ServeArgs) -> App {
        App {
            admission: Admission::new(args.cpu_limit, args.queue),
            goroutines_max: args.max_goroutines,
        }
    }

    pub(crate) fn answer(&self, req: &Request<'_>) -> Response {
        match (req.method(), req.path()) {
            ("GET" | "HEAD", "/") => light(),
            ("GET" | "HEAD", "/heavy") => self.heavy(),
            ("GET" | "HEAD", "/mixed") => self.mixed(),
            ("GET" | "HEAD", "/stats") => Response::json(stats::json()),
            ("GET" | "HEAD", "/healthz") => self.health(),
            (_, "/" | "/heavy" | "/mixed" | "/stats" | "/healthz") => {
                Response::new(405).header("Allow", "GET, HEAD").body("only GET and HEAD\n")
            }
            _ => Response::not_found(),
        }
    }

    /// One request of five is heavy, by chance.
    fn mixed(&self) -> Response {
        if fastrand::u32(0..100) < 20 { self.heavy() } else { light() }
    }

    fn heavy(&self) -> Response {
        match self.admission.run(compute) {
            Ok(result) => Response::text(format!("Heavy task result: {result}")),
            Err(Full) => Response::new(503).header("Retry-After", "1").body("too busy\n"),
        }
    }

    fn health(&self) -> Response {
        let goroutines = runtime::num_goroutine();
        let is_well = goroutines <= self.goroutines_max;
        let text = format!("{goroutines} goroutines, at most {}\n", self.goroutines_max);
        Response::text(text).status(if is_well { 200 } else { 503 })
    }
}

fn light() -> Response {
    Response::text("Hello, World!")
}

/// The compiler would find a formula, if it could see the sums.
fn compute() -> u64 {
    (0..ADDITIONS).fold(0, |sum, n| black_box(sum + n))
}
