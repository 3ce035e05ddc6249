//! `/debug/metrics`: all metrics for Prometheus.

use gosched_http::Response;

/// What Prometheus calls the format.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) fn answer() -> Response {
    let mut text = String::new();
    match gosched::metrics::prometheus(&mut text) {
        Ok(()) => Response::text(text).header("Content-Type", KIND),
        Err(_) => Response::new(500).body("the metrics can't be written\n"),
    }
}
