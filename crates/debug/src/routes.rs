//! Which path is answered by whom.

use crate::{dump, index, metrics, page, pprof, state, trace};
use gosched_http::{Request, Response};

/// Answers a request for a path below `/debug`; `None` for every other path.
///
/// For servers that have these pages beside their own. Who may ask is the caller's business.
///
/// ```no_run
/// use gosched::net::TcpListener;
/// use gosched_http::{Response, serve};
///
/// # fn main() -> std::io::Result<()> {
/// serve(TcpListener::bind("127.0.0.1:8080")?, |req| {
///     gosched_debug::answer(req).unwrap_or_else(|| Response::text("Hello, World!\n"))
/// })
/// # }
/// ```
pub fn answer(req: &Request<'_>) -> Option<Response> {
    let path = req.path().strip_prefix("/debug")?;
    if !path.is_empty() && !path.starts_with('/') {
        return None;
    }
    if !matches!(req.method(), "GET" | "HEAD") {
        return Some(Response::new(405).header("Allow", "GET, HEAD").body("only GET and HEAD\n"));
    }
    Some(match path {
        "" | "/" => index::answer(),
        "/dump" => dump::answer(req),
        "/metrics" => metrics::answer(),
        "/sched" => page::answer(),
        "/sched.json" => state::answer(req),
        "/trace" => trace::answer(req),
        "/pprof" => pprof::answer(req, ""),
        _ => match path.strip_prefix("/pprof/") {
            Some(rest) => pprof::answer(req, rest),
            None => no_page(),
        },
    })
}

fn no_page() -> Response {
    Response::new(404).body("no such page; /debug/ has a list\n")
}
