use super::DurationError::{NoNumber, NoUnit, TooLong, Zero};
use super::*;

#[test]
fn texts() {
    let cases = [
        ("500ms", Ok(500)),
        ("5s", Ok(5_000)),
        ("2m", Ok(120_000)),
        ("1h", Ok(3_600_000)),
        ("007s", Ok(7_000)),
        ("18446744073709551615ms", Ok(u64::MAX)),
        ("18446744073709551616ms", Err(TooLong)),
        ("18446744073709551615s", Err(TooLong)),
        ("0s", Err(Zero)),
        ("", Err(NoNumber)),
        ("s", Err(NoNumber)),
        ("-1s", Err(NoNumber)),
        (" 1s", Err(NoNumber)),
        ("5", Err(NoUnit)),
        ("5 s", Err(NoUnit)),
        ("5sec", Err(NoUnit)),
        ("5S", Err(NoUnit)),
        ("1.5s", Err(NoUnit)),
        ("1m30s", Err(NoUnit)),
        ("٣s", Err(NoNumber)),
    ];
    for (text, want) in cases {
        assert_eq!(parse(text), want.map(Duration::from_millis), "{text:?}");
    }
}
