use super::*;

#[track_caller]
fn check(arguments: TokenStream, item: TokenStream, want: TokenStream) {
    assert_eq!(expand(arguments, item).to_string(), want.to_string());
}

#[test]
fn main_without_a_result() {
    check(
        quote!(),
        quote!(
            fn main() {
                hello();
            }
        ),
        quote! {
            fn main() -> ! {
                fn main() { hello(); }
                ::gosched::__private::main(main)
            }
        },
    );
}

#[test]
fn attributes_visibility_result_and_path() {
    check(
        quote!(crate = crate::renamed),
        quote!(
            #[cfg(unix)]
            pub(crate) fn start() -> Result<(), Error> {
                run()?;
                Ok(())
            }
        ),
        quote! {
            #[cfg(unix)]
            pub(crate) fn start() -> ! {
                fn start() -> Result<(), Error> { run()?; Ok(()) }
                crate::renamed::__private::main(start)
            }
        },
    );
}

#[test]
fn mistakes_in_the_arguments_and_in_the_function_are_told_together() {
    let told = expand(
        quote!(threads = 4),
        quote!(
            async fn main() {}
        ),
    )
    .to_string();
    assert!(told.contains("unknown argument `threads`"), "{told}");
    assert!(told.contains("remove `async`"), "{told}");
    assert!(told.starts_with("fn main ()"), "{told}");
}

#[test]
fn an_item_of_another_kind_stays_beside_its_error() {
    let told = expand(
        quote!(),
        quote!(
            struct Main;
        ),
    )
    .to_string();
    assert!(told.contains("goes on a function"), "{told}");
    assert!(told.ends_with("struct Main ;"), "{told}");
}
