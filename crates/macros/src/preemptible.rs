//! The expansion of `#[gosched::preemptible]`.

use crate::options::{CRATE, Options};
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Error, ItemFn, Path, Stmt, parse_quote};

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match with_safepoints(arguments, item.clone()) {
        Ok(function) => function.into_token_stream(),
        // The function stays, so that nothing else is reported as missing.
        Err(error) => TokenStream::from_iter([error.to_compile_error(), item]),
    }
}

fn with_safepoints(arguments: TokenStream, item: TokenStream) -> syn::Result<ItemFn> {
    let options = Options::parse(arguments, &[CRATE])?;
    // A method is parsed alike.
    let mut function: ItemFn = syn::parse2(item)?;
    if let Some(word) = &function.sig.constness {
        return Err(Error::new_spanned(
            word,
            "a constant has no goroutine to stop: remove `const`",
        ));
    }
    Loops { gosched: &options.gosched }.visit_block_mut(&mut function.block);
    function.block.stmts.insert(0, safepoint(&options.gosched));
    Ok(function)
}

fn safepoint(gosched: &Path) -> Stmt {
    parse_quote!(#gosched::runtime::safepoint();)
}

/// Puts the safepoint at the head of every loop's body, which each way round passes.
struct Loops<'a> {
    gosched: &'a Path,
}

impl VisitMut for Loops<'_> {
    fn visit_expr_while_mut(&mut self, expr: &mut syn::ExprWhile) {
        visit_mut::visit_expr_while_mut(self, expr);
        expr.body.stmts.insert(0, safepoint(self.gosched));
    }

    fn visit_expr_loop_mut(&mut self, expr: &mut syn::ExprLoop) {
        visit_mut::visit_expr_loop_mut(self, expr);
        expr.body.stmts.insert(0, safepoint(self.gosched));
    }

    fn visit_expr_for_loop_mut(&mut self, expr: &mut syn::ExprForLoop) {
        visit_mut::visit_expr_for_loop_mut(self, expr);
        expr.body.stmts.insert(0, safepoint(self.gosched));
    }

    // Other functions' code.
    fn visit_expr_closure_mut(&mut self, _: &mut syn::ExprClosure) {}
    fn visit_expr_async_mut(&mut self, _: &mut syn::ExprAsync) {}
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    // Evaluated when the program is built.
    fn visit_expr_const_mut(&mut self, _: &mut syn::ExprConst) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
}

#[cfg(test)]
mod tests;
