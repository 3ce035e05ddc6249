//! `/debug/dump`: what every goroutine does.

use crate::query;
use gosched::runtime;
use gosched_http::{Request, Response};

pub(crate) fn answer(req: &Request<'_>) -> Response {
    let mut text = String::new();
    let written = match query::is_set(req, "groups") {
        true => runtime::dump_groups(&mut text),
        false => runtime::dump(&mut text),
    };
    match written {
        Ok(()) => Response::text(text),
        Err(_) => Response::new(500).body("the dump can't be written\n"),
    }
}
