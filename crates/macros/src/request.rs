//! What an attribute is asked to do: a function and options, both checked.

use crate::function::Function;
use crate::options::{Known, Options};
use proc_macro2::TokenStream;

pub(crate) struct Request {
    pub(crate) function: Function,
    pub(crate) options: Options,
}

impl Request {
    /// Reads an attribute's arguments and its item; what is wrong comes back as an expansion that
    /// tells so.
    pub(crate) fn parse(
        arguments: TokenStream,
        item: TokenStream,
        known: &[Known],
    ) -> Result<Self, TokenStream> {
        let mut function: Function = syn::parse2(item.clone())
            .map_err(|error| TokenStream::from_iter([error.to_compile_error(), item]))?;
        let options = Options::parse(arguments, known);
        let faults = function.faults.take();
        match (options, faults) {
            (Ok(options), None) => Ok(Request { function, options }),
            (Ok(_), Some(errors)) | (Err(errors), None) => Err(function.rejected(&errors)),
            (Err(mut errors), Some(more)) => {
                errors.combine(more);
                Err(function.rejected(&errors))
            }
        }
    }
}
