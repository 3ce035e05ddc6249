//! The expansion of `#[gosched::main]`.

use crate::function::Function;
use crate::options::CRATE;
use crate::request::Request;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match Request::parse(arguments, item, &[CRATE]) {
        Ok(request) => accepted(&request),
        Err(rejected) => rejected,
    }
}

fn accepted(request: &Request) -> TokenStream {
    let Request { function, options } = request;
    let Function { attributes, visibility, name, output, body, .. } = function;
    let gosched = &options.gosched;
    let callee = function.callee();
    let run = quote_spanned!(function.output_place()=> #gosched::__private::main(#callee));
    quote! {
        #(#attributes)*
        #visibility fn #name() -> ! {
            fn #name() #output #body
            #run
        }
    }
}

#[cfg(test)]
mod tests;
