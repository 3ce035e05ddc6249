//! `/debug/`: what there is.

use gosched_http::Response;

pub(crate) fn answer() -> Response {
    Response::text(include_str!("index.html")).header("Content-Type", "text/html; charset=utf-8")
}
