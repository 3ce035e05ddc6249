//! A function as far as the macros look into it.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Abi, Attribute, Error, Generics, Ident, ReturnType, Token, Visibility, WhereClause,
    parenthesized, token,
};

/// A function without arguments that the runtime is to call.
pub(crate) struct Function {
    /// Its attributes, doc comments included.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    /// `-> T`, or nothing.
    pub(crate) output: ReturnType,
    /// The braces and what is in them, unparsed.
    pub(crate) body: TokenStream,
    /// What about it can't be run as a goroutine, each error at its place.
    pub(crate) faults: Faults,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut faults = Faults::default();
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        qualifiers(input, &mut faults)?;
        if !input.peek(Token![fn]) {
            return Err(input.error("this attribute goes on a function: expected `fn`"));
        }
        input.parse::<Token![fn]>()?;
        let name = input.parse()?;
        generics(input, &mut faults)?;
        arguments(input, &mut faults)?;
        let output = input.parse()?;
        if let Some(clause) = input.parse::<Option<WhereClause>>()? {
            faults.at(&clause, "nothing is generic here: remove the `where` clause");
        }
        let body = body(input, &mut faults)?;
        Ok(Function { attributes, visibility, name, output, body, faults })
    }
}

impl Function {
    /// Where the compiler should point when the result can't be reported to the system.
    pub(crate) fn output_place(&self) -> Span {
        match &self.output {
            ReturnType::Default => Span::call_site(),
            ReturnType::Type(_, of) => Span::call_site().located_at(of.span()),
        }
    }

    /// The name as an expression, with its errors at the result's type.
    pub(crate) fn callee(&self) -> Ident {
        let mut callee = self.name.clone();
        callee.set_span(callee.span().located_at(self.output_place()));
        callee
    }

    /// The function under its name, but with the errors as its body (I3).
    pub(crate) fn rejected(&self, errors: &Error) -> TokenStream {
        let Function { attributes, visibility, name, .. } = self;
        let errors = errors.to_compile_error();
        quote!(#(#attributes)* #visibility fn #name() { #errors })
    }
}

/// Errors collected, so that all are told at once.
#[derive(Default)]
pub(crate) struct Faults(Option<Error>);

impl Faults {
    /// Adds an error with its place.
    fn at(&mut self, place: impl ToTokens, message: &str) {
        let error = Error::new_spanned(place, message);
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            none => *none = Some(error),
        }
    }

    pub(crate) fn take(&mut self) -> Option<Error> {
        self.0.take()
    }
}

fn qualifiers(input: ParseStream<'_>, faults: &mut Faults) -> syn::Result<()> {
    loop {
        if let Some(word) = input.parse::<Option<Token![async]>>()? {
            faults.at(word, "a goroutine blocks where a future would await: remove `async`");
        } else if let Some(word) = input.parse::<Option<Token![const]>>()? {
            faults.at(word, "a goroutine runs when the program does: remove `const`");
        } else if let Some(word) = input.parse::<Option<Token![unsafe]>>()? {
            faults.at(word, "the runtime can keep no safety contract for this: remove `unsafe`");
        } else if let Some(abi) = input.parse::<Option<Abi>>()? {
            faults.at(abi, "the runtime calls this as a Rust function: remove `extern`");
        } else {
            return Ok(());
        }
    }
}

fn generics(input: ParseStream<'_>, faults: &mut Faults) -> syn::Result<()> {
    let generics: Generics = input.parse()?;
    if generics.lt_token.is_some() {
        faults.at(&generics, "nobody can choose the parameters of this function: remove them");
    }
    Ok(())
}

fn arguments(input: ParseStream<'_>, faults: &mut Faults) -> syn::Result<()> {
    let inside;
    parenthesized!(inside in input);
    let arguments: TokenStream = inside.parse()?;
    if !arguments.is_empty() {
        faults.at(
            arguments,
            "the runtime has no arguments for this function: remove them \
             (`std::env::args()` has the command line)",
        );
    }
    Ok(())
}

fn body(input: ParseStream<'_>, faults: &mut Faults) -> syn::Result<TokenStream> {
    if let Some(semicolon) = input.parse::<Option<Token![;]>>()? {
        faults.at(semicolon, "the runtime has nothing to run here: write a body in braces");
        return Ok(TokenStream::new());
    }
    if !input.peek(token::Brace) {
        return Err(input.error("expected the function's body in braces"));
    }
    let body: Group = input.parse()?;
    debug_assert_eq!(body.delimiter(), Delimiter::Brace);
    Ok(TokenTree::Group(body).into())
}

#[cfg(test)]
mod tests;
