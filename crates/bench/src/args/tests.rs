use super::*;

fn parse(line: &str) -> Result<Args, UsageError> {
    Args::parse(line.split_whitespace().map(String::from))
}

#[test]
fn three_ways_to_give_an_option() {
    for line in ["ring --n 7 --cap 3", "ring --n=7 --cap=3", "ring n=7 cap=3"] {
        let args = parse(line).unwrap();
        assert_eq!(args.bench, "ring");
        assert_eq!(args.n(1), Ok(7));
        assert_eq!(args.get("cap", 0), Ok(3));
    }
}

#[test]
fn defaults_and_floors() {
    let args = parse("ring --n 0 --procs 0").unwrap();
    assert_eq!((args.n(9), args.procs), (Ok(1), 1));
    assert_eq!(parse("ring").unwrap().n(9), Ok(9));
    assert!(parse("ring").unwrap().procs >= 1);
}

#[test]
fn a_later_one_wins() {
    assert_eq!(parse("ring --procs 2 procs=1").unwrap().procs, 1);
}

#[test]
fn numbers_with_underscores_and_times() {
    let args = parse("ring n=1_000_000 secs=0.25").unwrap();
    assert_eq!(args.n(1), Ok(1_000_000));
    assert_eq!(args.secs("secs", 3.0), Ok(Duration::from_millis(250)));
}

#[test]
fn choices() {
    let choices = [("busy", 1), ("sleep", 2)];
    assert_eq!(parse("x").unwrap().choice("mode", &choices), Ok(1));
    assert_eq!(parse("x mode=sleep").unwrap().choice("mode", &choices), Ok(2));
    let error = parse("x mode=lazy").unwrap().choice("mode", &choices).unwrap_err();
    assert_eq!(error.to_string(), "mode is busy or sleep, not \"lazy\"");
}

#[test]
fn mistakes_are_named() {
    let cases = [
        (parse("").map(drop), "no bench named"),
        (parse("ring --n").map(drop), "--n wants a value"),
        (parse("ring 7").map(drop), "what is \"7\"?"),
        (parse("ring procs=two").map(drop), "bad value for procs: \"two\""),
        (parse("ring n=-1").unwrap().n(1).map(drop), "bad value for n: \"-1\""),
    ];
    for (result, want) in cases {
        assert_eq!(result.unwrap_err().to_string(), want);
    }
    assert!(parse("ring secs=-1").unwrap().secs("secs", 1.0).is_err());
}
