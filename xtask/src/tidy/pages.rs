//! What every source file owes its reader: a page at its head, a reasonable length, no noise.

use super::Problem;
use super::source::Source;

const LINES_MAX: usize = 600;

const PRINTING: &[&str] = &["println", "eprintln", "print", "eprint"];

/// Crates that are programs and so may print.
const PROGRAMS: &[&str] = &["crates/cli/", "crates/bench/"];

/// The rules of one file.
pub(crate) fn check(source: &Source) -> Vec<Problem> {
    let mut problems = ignored_without_reason(source);
    let in_crate = source.path.starts_with("crates/") && source.path.contains("/src/");
    // The page of a module covers its tests.
    if in_crate && !source.is_test() {
        problems.extend(module_page(source));
        if !PROGRAMS.iter().any(|path| source.path.starts_with(path)) {
            problems.extend(printing(source));
        }
    }
    problems.extend(length(source));
    problems
}

fn page(source: &Source) -> impl Iterator<Item = &str> {
    let lines = source.lines.iter().map(|line| line.comment.trim());
    lines.take_while(|comment| comment.starts_with("//!"))
}

fn module_page(source: &Source) -> Option<Problem> {
    let included =
        source.lines.first().is_some_and(|line| line.code.starts_with("#![doc = include_str!"));
    let missing = !included && page(source).next().is_none();
    missing.then(|| Problem::new(&source.path, 1, "the file does not begin with a `//!` page"))
}

fn length(source: &Source) -> Option<Problem> {
    let lines = source.lines.len();
    let explained = page(source).any(|line| line.contains("Length:"));
    (lines > LINES_MAX && !explained).then(|| {
        let text = format!("{lines} lines; over {LINES_MAX} the page says why after `Length:`");
        Problem::new(&source.path, 0, text)
    })
}

fn printing(source: &Source) -> impl Iterator<Item = Problem> + '_ {
    let pairs = source.tokens.windows(2);
    let prints = pairs.filter(|pair| {
        PRINTING.contains(&pair[0].text.as_str()) && pair[1].text == "!" && !pair[0].place.in_test
    });
    prints.map(|pair| {
        let text = format!("`{}!` in a library: only programs print", pair[0].text);
        Problem::new(&source.path, pair[0].line, text)
    })
}

fn ignored_without_reason(source: &Source) -> Vec<Problem> {
    let bare = |window: &[super::source::Token]| {
        ["[", "ignore", "]"].iter().zip(window).all(|(text, token)| token.text == *text)
    };
    let found = source.tokens.windows(3).filter(|window| bare(window));
    let text = "`#[ignore]` without a reason";
    found.map(|window| Problem::new(&source.path, window[1].line, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Source, check};

    fn problems(path: &str, text: &str) -> usize {
        check(&Source::new(path, text)).len()
    }

    #[test]
    fn a_page_comes_first() {
        assert_eq!(problems("crates/x/src/a.rs", "//! Page.\nfn f() {}"), 0);
        assert_eq!(problems("crates/x/src/a.rs", "#![doc = include_str!(\"../README.md\")]"), 0);
        assert_eq!(problems("crates/x/src/a.rs", "fn f() {}"), 1);
        assert_eq!(problems("crates/x/src/a.rs", "\n//! Page."), 1);
        assert_eq!(problems("crates/x/src/a/tests.rs", "fn f() {}"), 0);
        assert_eq!(problems("crates/x/tests/it/a.rs", "fn f() {}"), 0);
    }

    #[test]
    fn length_is_explained() {
        let long = "fn f() {}\n".repeat(601);
        assert_eq!(problems("crates/x/src/a.rs", &format!("//! Page.\n{long}")), 1);
        assert_eq!(problems("crates/x/src/a.rs", &format!("//! Length: one table.\n{long}")), 0);
    }

    #[test]
    fn only_programs_print() {
        let text = "//! Page.\nfn f() { println!(\"a\"); }";
        assert_eq!(problems("crates/sched/src/a.rs", text), 1);
        assert_eq!(problems("crates/cli/src/a.rs", text), 0);
        assert_eq!(problems("crates/sched/src/a/tests.rs", text), 0);
        assert_eq!(problems("crates/sched/build.rs", text), 0);
        assert_eq!(problems("crates/sched/src/a.rs", "//! Page.\n/// `println!`\nfn f() {}"), 0);
    }

    #[test]
    fn ignored_tests_have_a_reason() {
        assert_eq!(problems("crates/x/tests/a.rs", "#[test]\n#[ignore]\nfn f() {}"), 1);
        assert_eq!(problems("crates/x/tests/a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}"), 0);
    }
}
