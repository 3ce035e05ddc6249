//! What stands behind the `?` of a request.

use gosched_http::{Request, Response};
use std::time::Duration;

/// The longest that a request may last.
const SECONDS_MAX: f64 = 3600.0;

/// The value of a parameter, not decoded: ours are numbers.
pub(crate) fn value<'a>(req: &Request<'a>, name: &str) -> Option<&'a str> {
    find(req.query()?, name)
}

fn find<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// A switch, such as `groups=1`.
pub(crate) fn is_set(req: &Request<'_>, name: &str) -> bool {
    value(req, name).is_some_and(|value| !matches!(value, "" | "0" | "false"))
}

/// How long: `seconds=2.5`, else `default` seconds.
///
/// # Errors
/// An answer for what is no time.
pub(crate) fn seconds(req: &Request<'_>, default: f64) -> Result<Duration, Response> {
    let Some(text) = value(req, "seconds") else { return Ok(Duration::from_secs_f64(default)) };
    parse_seconds(text).ok_or_else(|| {
        Response::new(400).body(format!("seconds: a number up to {SECONDS_MAX}, more than 0\n"))
    })
}

fn parse_seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    (seconds > 0.0 && seconds <= SECONDS_MAX).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::{find, parse_seconds};
    use std::time::Duration;

    #[test]
    fn parameters() {
        for (query, wanted) in [
            ("seconds=5", Some("5")),
            ("a=1&seconds=5&seconds=6", Some("5")),
            ("seconds", Some("")),
            ("second=5", None),
            ("", None),
        ] {
            assert_eq!(find(query, "seconds"), wanted, "{query}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(parse_seconds("2.5"), Some(Duration::from_millis(2500)));
        for text in ["", "0", "-1", "x", "NaN", "inf", "3601", "1e300"] {
            assert_eq!(parse_seconds(text), None, "{text}");
        }
    }
}
