//! The expansion of `#[gosched::test]`.

use crate::function::Function;
use crate::options::{CRATE, TIMEOUT};
use crate::request::Request;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use std::time::Duration;
use syn::Error;
use syn::ext::IdentExt;

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let request = match Request::parse(arguments, item, &[TIMEOUT, CRATE]) {
        Ok(request) => request,
        Err(rejected) => return rejected,
    };
    let function = &request.function;
    match function.attributes.iter().find(|attribute| attribute.path().is_ident("test")) {
        None => accepted(&request),
        Some(second) => {
            let message = "`#[gosched::test]` makes this a test already: remove `#[test]`";
            function.rejected(&Error::new_spanned(second, message))
        }
    }
}

fn accepted(request: &Request) -> TokenStream {
    let Request { function, options } = request;
    let Function { attributes, visibility, name, output, body, .. } = function;
    let gosched = &options.gosched;
    let text = name.unraw().to_string();
    let path = quote!(::core::concat!(::core::module_path!(), "::", #text));
    let timeout = limit(options.timeout);
    let callee = function.callee();
    let run = quote_spanned! {function.output_place()=>
        #gosched::__private::test(#path, #timeout, #callee)
    };
    quote! {
        #[::core::prelude::v1::test]
        #(#attributes)*
        #visibility fn #name() #output {
            fn #name() #output #body
            #run
        }
    }
}

/// An `Option<Duration>` as an expression.
fn limit(timeout: Option<Duration>) -> TokenStream {
    let Some(limit) = timeout else { return quote!(::core::option::Option::None) };
    let ms = u64::try_from(limit.as_millis()).expect("it was read into 64 bits");
    quote!(::core::option::Option::Some(::core::time::Duration::from_millis(#ms)))
}

#[cfg(test)]
mod tests;
