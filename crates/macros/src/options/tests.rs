use super::*;
use quote::{ToTokens, quote};

const ALL: &[Known] = &[CRATE, TIMEOUT];

fn error(arguments: TokenStream, known: &[Known]) -> String {
    Options::parse(arguments, known).err().expect("these arguments are wrong").to_string()
}

#[test]
fn defaults() {
    let options = Options::parse(quote!(), ALL).unwrap();
    assert_eq!(options.gosched.to_token_stream().to_string(), quote!(::gosched).to_string());
    assert_eq!(options.timeout, None);
}

#[test]
fn both_in_any_order_with_a_trailing_comma() {
    for arguments in
        [quote!(crate = copy, timeout = "500ms"), quote!(timeout = "500ms", crate = copy,)]
    {
        let options = Options::parse(arguments, ALL).unwrap();
        assert!(options.gosched.is_ident("copy"));
        assert_eq!(options.timeout, Some(Duration::from_millis(500)));
    }
}

#[test]
fn paths_from_the_root_and_from_the_crate() {
    for path in [quote!(::renamed), quote!(crate::inside), quote!(self::near)] {
        let options = Options::parse(quote!(crate = #path), ALL).unwrap();
        assert_eq!(options.gosched.to_token_stream().to_string(), path.to_string());
    }
}

#[test]
fn mistakes_say_what_to_write() {
    let cases = [
        (
            quote!(flavor = "multi_thread"),
            "unknown argument `flavor`: this attribute takes `crate = path` and `timeout = \"5s\"`",
        ),
        (quote!(timeout = "1s", timeout = "2s"), "`timeout` is given twice"),
        (quote!(crate = "gosched"), "write the path without quotes, as in `crate = my::gosched`"),
        (quote!(timeout = 5), "expected a time with its unit in quotes, such as \"5s\""),
        (quote!(timeout = "5"), "a time ends with its unit, `ms`, `s`, `m` or `h`, as in \"5s\""),
        (quote!(timeout("5s")), "expected `=`"),
        (quote!(timeout = "5s" crate = a), "expected `,`"),
    ];
    for (arguments, want) in cases {
        assert_eq!(error(arguments, ALL), want);
    }
}

#[test]
fn main_has_no_timeout() {
    assert_eq!(
        error(quote!(timeout = "5s"), &[CRATE]),
        "unknown argument `timeout`: this attribute takes `crate = path`",
    );
}
