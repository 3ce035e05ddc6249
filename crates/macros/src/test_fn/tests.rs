use super::*;

#[track_caller]
fn check(arguments: TokenStream, item: TokenStream, want: TokenStream) {
    assert_eq!(expand(arguments, item).to_string(), want.to_string());
}

#[test]
fn without_a_timeout() {
    check(
        quote!(),
        quote!(
            #[ignore = "slow"]
            #[should_panic]
            fn fails() {
                panic!()
            }
        ),
        quote! {
            #[::core::prelude::v1::test]
            #[ignore = "slow"]
            #[should_panic]
            fn fails() {
                fn fails() { panic!() }
                ::gosched::__private::test(
                    ::core::concat!(::core::module_path!(), "::", "fails"),
                    ::core::option::Option::None,
                    fails
                )
            }
        },
    );
}

#[test]
fn with_a_timeout_and_a_result() {
    check(
        quote!(timeout = "2m"),
        quote!(
            fn reads() -> io::Result<()> {
                Ok(())
            }
        ),
        quote! {
            #[::core::prelude::v1::test]
            fn reads() -> io::Result<()> {
                fn reads() -> io::Result<()> { Ok(()) }
                ::gosched::__private::test(
                    ::core::concat!(::core::module_path!(), "::", "reads"),
                    ::core::option::Option::Some(::core::time::Duration::from_millis(120000u64)),
                    reads
                )
            }
        },
    );
}

#[test]
fn a_second_test_attribute_is_refused() {
    let told = expand(
        quote!(),
        quote!(
            #[test]
            fn twice() {}
        ),
    )
    .to_string();
    assert!(told.contains("remove `#[test]`"), "{told}");
}
