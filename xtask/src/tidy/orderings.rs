//! Atomic orderings are argued for where they stand, and stand in few files.

use super::Problem;
use super::source::{Source, Token};

const NAMES: &[&str] = &["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

/// How many lines of code one comment covers.
const COVERED_LINES: usize = 12;

/// Folders of programs that count and wait with atomics of their own, apart from the runtime.
const PROGRAMS: &[&str] = &["testprogs/", "crates/bench/", "crates/demos/", "bench/"];

/// Every ordering without an `ORDERING:` comment in the lines above it.
///
/// One comment covers the lines below it up to a blank line. Where only `Relaxed` is used the
/// comment may begin with `Relaxed:` instead and say why nothing is needed.
pub(crate) fn check(source: &Source) -> Vec<Problem> {
    let argued = |line: usize, relaxed: bool| {
        let mut code_lines = 0;
        source
            .upwards(line)
            .take_while(|line| {
                code_lines += usize::from(!line.code.trim().is_empty());
                code_lines <= COVERED_LINES
            })
            .map(|line| line.comment.as_str())
            .any(|comment| comment.contains("ORDERING:") || relaxed && comment.contains("Relaxed:"))
    };
    let sites = sites(source).filter(|token| !argued(token.line, token.text == "Relaxed"));
    let mut lines: Vec<usize> = sites.map(|token| token.line).collect();
    lines.dedup();
    let text = "an atomic ordering without `// ORDERING:` in the lines above it";
    lines.into_iter().map(|line| Problem::new(&source.path, line, text)).collect()
}

/// Whether the file holds orderings.
pub(crate) fn is_used(source: &Source) -> bool {
    sites(source).next().is_some()
}

fn sites(source: &Source) -> impl Iterator<Item = &Token> {
    let exempt = source.is_test() || PROGRAMS.iter().any(|folder| source.path.starts_with(folder));
    let atomic = source.tokens.iter().any(|token| {
        ["Ordering", "atomic"].contains(&token.text.as_str()) || token.text.starts_with("Atomic")
    });
    let tokens = if atomic && !exempt { source.tokens.as_slice() } else { &[] };
    let is_site = |token: &&Token| {
        NAMES.contains(&token.text.as_str()) && !token.place.in_use && !token.place.in_test
    };
    tokens.iter().filter(is_site)
}

#[cfg(test)]
mod tests {
    use super::{Source, check, is_used};

    fn problems(text: &str) -> usize {
        check(&Source::new("crates/x/src/a.rs", text)).len()
    }

    #[test]
    fn a_site_needs_its_argument() {
        assert_eq!(problems("// ORDERING: pairs with b.\na.load(Ordering::Acquire);"), 0);
        assert_eq!(problems("a.load(Ordering::Acquire);"), 1);
        assert_eq!(problems("a.load(Ordering::Acquire); // ORDERING: pairs with b."), 0);
        assert_eq!(problems("// Relaxed: a hint.\na.load(Ordering::Relaxed);"), 0);
        assert_eq!(problems("// Relaxed: a hint.\na.load(Ordering::Acquire);"), 1);
        assert_eq!(
            problems("use std::sync::atomic::Ordering::{self, Relaxed};\na.load(Relaxed);"),
            1
        );
    }

    #[test]
    fn one_comment_covers_a_group() {
        let group =
            "// ORDERING: counters only.\na.load(Ordering::Relaxed);\nb.load(Ordering::Relaxed);";
        assert_eq!(problems(group), 0);
        assert_eq!(problems(&group.replace(";\nb", ";\n\nb")), 1);
        assert_eq!(problems(&group.replace(";\nb", &format!(";\n{}b", "c();\n".repeat(12)))), 1);
    }

    #[test]
    fn imports_tests_and_other_words_are_no_sites() {
        assert_eq!(problems("use std::sync::atomic::Ordering::{Acquire, Release};"), 0);
        assert_eq!(problems("#[cfg(test)]\nmod t { fn f() { a.load(Ordering::Acquire); } }"), 0);
        assert_eq!(problems("enum Act { Acquire, Release }"), 0);
        assert!(!is_used(&Source::new("crates/x/tests/it.rs", "a.load(Ordering::Acquire);")));
        assert!(is_used(&Source::new("crates/x/src/a.rs", "a.load(Ordering::Acquire);")));
    }
}
