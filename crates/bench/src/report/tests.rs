use super::*;

#[test]
fn a_line_begins_as_the_peers_lines_do() {
    let words = ["ring", "--procs", "2"].map(String::from);
    let report = Report::new(&Args::parse(words).unwrap(), 1_000);
    let report = report.time(Duration::from_micros(1_500), 1_000).set("channel", "cap 0");
    assert_eq!(
        report.to_string(),
        r#"{"impl":"gosched","bench":"ring","procs":2,"n":1000,"ns_per_op":1500.000,"secs":0.001500,"channel":"cap 0"}"#,
    );
}

#[test]
fn values() {
    let cases: [(Value, &str); 8] = [
        (Value::from(-7i64), "-7"),
        (Value::from(1u64 << 40), "1099511627776"),
        (Value::from(0.1234567), "0.123457"),
        (Value::from(-12.34567), "-12.346"),
        (Value::from("a \"quoted\" \\ word"), r#""a \"quoted\" \\ word""#),
        (Value::from("two\nlines"), r#""two\u000alines""#),
        (Value::from(Vec::new()), "[]"),
        (
            Value::from(vec![Report::default().set("a", 1u64), Report::default().set("b", 2u64)]),
            r#"[{"a":1},{"b":2}]"#,
        ),
    ];
    for (value, want) in cases {
        assert_eq!(value.to_string(), want);
    }
}

#[test]
fn lateness_is_in_microseconds() {
    let report = Report::default().lateness((1..=100).rev().map(|us| us * 1_000).collect());
    assert_eq!(
        report.to_string(),
        r#"{"late_p50_us":50.000,"late_p99_us":99.000,"late_max_us":100.000}"#,
    );
}
