//! `http_hello`: the server of `gosched-http`, as the peers' of net/http and hyper.
//!
//! It prints `{"port":N}` as its first line, and ends after `secs`.

use super::Outcome;
use super::serve::{listen, report};
use crate::args::Args;
use crate::work::sum_to;
use gosched_http::{Request, Response, Server};

/// What `/heavy` adds up to. The peers' number.
const HEAVY: u64 = 10_000_000;

pub(crate) fn run(args: &Args) -> Outcome {
    let life = args.secs("secs", 600.0)?;
    let listener = listen(args)?;
    let server = Server::new(route);
    let handle = server.handle();
    gosched::go(move || {
        gosched::time::sleep(life);
        handle.close();
    });
    server.serve(listener).expect("the listener is sound");
    Ok(report(args, 0, life))
}

fn route(req: &mut Request<'_>) -> Response {
    match req.path() {
        "/" => Response::text("Hello, World!"),
        "/heavy" => Response::text(sum_to(HEAVY).to_string()),
        _ => Response::not_found(),
    }
}
