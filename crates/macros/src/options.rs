//! What stands in the parentheses of an attribute.

use crate::duration;
use proc_macro2::TokenStream;
use std::time::Duration;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Ident, LitStr, Path, Token, parse_quote};

/// The arguments of an attribute, with the defaults filled in.
pub(crate) struct Options {
    /// `crate = path`: where gosched is.
    pub(crate) gosched: Path,
    /// `timeout = "5s"`.
    pub(crate) timeout: Option<Duration>,
}

/// An argument, and how it is written.
pub(crate) type Known = (&'static str, &'static str);

pub(crate) const CRATE: Known = ("crate", "crate = path");
pub(crate) const TIMEOUT: Known = ("timeout", "timeout = \"5s\"");

impl Options {
    /// Reads the arguments that `known` lists.
    pub(crate) fn parse(arguments: TokenStream, known: &[Known]) -> syn::Result<Self> {
        let read = |input: ParseStream<'_>| {
            let (mut gosched, mut timeout) = (None, None);
            while !input.is_empty() {
                let key = input.call(Ident::parse_any)?;
                let name = key.unraw().to_string();
                if !known.iter().any(|(key, _)| *key == name) {
                    return Err(Error::new(key.span(), unknown(&name, known)));
                }
                input.parse::<Token![=]>()?;
                let twice = match name.as_str() {
                    "crate" => gosched.replace(path(input)?).is_some(),
                    _ => timeout.replace(time(input)?).is_some(),
                };
                if twice {
                    return Err(Error::new(key.span(), format!("`{name}` is given twice")));
                }
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            let gosched = gosched.unwrap_or_else(|| parse_quote!(::gosched));
            Ok(Options { gosched, timeout })
        };
        read.parse2(arguments)
    }
}

fn unknown(name: &str, known: &[Known]) -> String {
    let forms: Vec<_> = known.iter().map(|(_, form)| format!("`{form}`")).collect();
    format!("unknown argument `{name}`: this attribute takes {}", forms.join(" and "))
}

fn path(input: ParseStream<'_>) -> syn::Result<Path> {
    if input.peek(LitStr) {
        return Err(input.error("write the path without quotes, as in `crate = my::gosched`"));
    }
    input.call(Path::parse_mod_style)
}

fn time(input: ParseStream<'_>) -> syn::Result<Duration> {
    let text: LitStr = input.parse().map_err(|error| {
        Error::new(error.span(), "expected a time with its unit in quotes, such as \"5s\"")
    })?;
    duration::parse(&text.value()).map_err(|error| Error::new(text.span(), error))
}

#[cfg(test)]
mod tests;
