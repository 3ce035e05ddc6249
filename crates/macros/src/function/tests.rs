use super::*;

/// The messages about a function, in the order of its tokens.
fn faults(item: TokenStream) -> Vec<String> {
    let mut function: Function = syn::parse2(item).unwrap();
    let errors = function.faults.take().into_iter().flatten();
    errors.map(|error| error.to_string()).collect()
}

#[test]
fn a_plain_function_has_no_faults() {
    let items = [
        quote!(
            fn main() {}
        ),
        quote! {
            /// Says hello.
            #[inline(never)]
            pub(crate) fn hello() -> Result<(), Box<dyn std::error::Error>> {
                #![allow(unused)]
                this is << not even Rust >>
            }
        },
    ];
    for item in items {
        assert_eq!(faults(item), [""; 0]);
    }
}

#[test]
fn each_fault_says_what_to_do() {
    let cases = [
        (
            quote!(
                async fn main() {}
            ),
            "remove `async`",
        ),
        (
            quote!(
                const fn main() {}
            ),
            "remove `const`",
        ),
        (
            quote!(
                unsafe fn main() {}
            ),
            "remove `unsafe`",
        ),
        (
            quote!(
                extern "C" fn main() {}
            ),
            "remove `extern`",
        ),
        (
            quote!(
                fn main<T>() {}
            ),
            "remove them",
        ),
        (
            quote!(
                fn main(args: Vec<String>) {}
            ),
            "std::env::args()",
        ),
        (
            quote!(
                fn main(&self) {}
            ),
            "remove them",
        ),
        (
            quote!(
                fn main()
                where
                    u8: Copy,
                {
                }
            ),
            "remove the `where` clause",
        ),
        (
            quote!(
                fn main();
            ),
            "write a body in braces",
        ),
    ];
    for (item, hint) in cases {
        let told = faults(item);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(hint), "{told:?} has no {hint:?}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    assert_eq!(
        faults(quote!(
            pub async unsafe fn main<T>(t: T) {}
        ))
        .len(),
        4
    );
}

#[test]
fn a_fault_is_at_its_place() {
    let mut function: Function = syn::parse_str("fn main(\n  who: &str,\n) {}").unwrap();
    let errors = function.faults.take().unwrap();
    assert_eq!((errors.span().start().line, errors.span().end().line), (2, 2));
}

#[test]
fn other_items_are_refused() {
    for item in [
        quote!(
            struct Main;
        ),
        quote!(
            static MAIN: u8 = 0;
        ),
        quote!(
            mod main {}
        ),
    ] {
        let error = syn::parse2::<Function>(item).err().unwrap();
        assert!(error.to_string().starts_with("this attribute goes on a function"), "{error}");
    }
}

#[test]
fn a_rejected_function_keeps_its_name_and_attributes() {
    let item = quote!(
        #[cfg(unix)]
        pub async fn start() -> u8 {
            1
        }
    );
    let mut function: Function = syn::parse2(item).unwrap();
    let errors = function.faults.take().unwrap();
    let compile_error = errors.to_compile_error();
    let want = quote!(#[cfg(unix)] pub fn start() { #compile_error });
    assert_eq!(function.rejected(&errors).to_string(), want.to_string());
}

#[test]
fn a_raw_name_stays_raw() {
    let function: Function = syn::parse2(quote!(
        fn r#loop() {}
    ))
    .unwrap();
    assert_eq!(function.callee().to_string(), "r#loop");
}
