//! `/debug/sched`: the page of the scheduler. It is one file and asks for nothing from elsewhere.

use gosched_http::Response;

/// The browser keeps to it: no other scripts, and no other servers.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'";

pub(crate) fn answer() -> Response {
    Response::text(include_str!("sched.html"))
        .header("Content-Type", "text/html; charset=utf-8")
        .header("Content-Security-Policy", POLICY)
        .header("Cache-Control", "no-store")
}
