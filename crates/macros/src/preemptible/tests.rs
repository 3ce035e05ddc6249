use super::*;
use quote::quote;

#[track_caller]
fn check(arguments: TokenStream, item: TokenStream, want: TokenStream) {
    assert_eq!(expand(arguments, item).to_string(), want.to_string());
}

#[test]
fn the_entry_and_every_loop() {
    check(
        quote!(),
        quote! {
            /// Kept.
            pub(crate) unsafe fn f<T: Copy>(&self, n: T) -> u32 where T: Into<u32> {
                while g() { h(); }
                'outer: loop {
                    for x in match n { _ => 0..3 } { continue 'outer; }
                }
                while let Some(x) = { while a {} next() } {}
            }
        },
        quote! {
            /// Kept.
            pub(crate) unsafe fn f<T: Copy>(&self, n: T) -> u32 where T: Into<u32> {
                ::gosched::runtime::safepoint();
                while g() { ::gosched::runtime::safepoint(); h(); }
                'outer: loop {
                    ::gosched::runtime::safepoint();
                    for x in match n { _ => 0..3 } {
                        ::gosched::runtime::safepoint();
                        continue 'outer;
                    }
                }
                while let Some(x) = { while a { ::gosched::runtime::safepoint(); } next() } {
                    ::gosched::runtime::safepoint();
                }
            }
        },
    );
}

#[test]
fn other_functions_inside_stay_as_they_are() {
    check(
        quote!(crate = crate::renamed),
        quote! {
            fn f() {
                let c = |x| loop { x(); };
                fn inner() { loop {} }
                let a = async { loop {} };
                const N: usize = { let mut n = 0; while n < 3 { n += 1; } n };
            }
        },
        quote! {
            fn f() {
                crate::renamed::runtime::safepoint();
                let c = |x| loop { x(); };
                fn inner() { loop {} }
                let a = async { loop {} };
                const N: usize = { let mut n = 0; while n < 3 { n += 1; } n };
            }
        },
    );
}

#[test]
fn what_has_no_goroutine_is_refused() {
    let told = expand(
        quote!(),
        quote!(
            const fn f() {}
        ),
    )
    .to_string();
    assert!(told.contains("remove `const`"), "{told}");
    let told = expand(
        quote!(always),
        quote!(
            fn f() {}
        ),
    )
    .to_string();
    assert!(told.contains("unknown argument `always`"), "{told}");
    let told = expand(
        quote!(),
        quote!(
            struct S;
        ),
    )
    .to_string();
    assert!(told.contains("compile_error") && told.ends_with("struct S ;"), "{told}");
}
