//! Unsafe code says why it is sound, and stays in the files that are named for it.

use super::Problem;
use super::source::{Line, Source};

/// Words that state soundness instead of giving the reason.
const EMPTY_WORDS: &[&str] = &["obviously", "trivially"];

/// The comments of unsafe code in one file.
pub(crate) fn check(source: &Source) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, token) in source.tokens.iter().enumerate() {
        if token.text != "unsafe" {
            continue;
        }
        let next: Vec<&str> =
            source.tokens[at + 1..].iter().take(6).map(|token| token.text.as_str()).collect();
        let missing = match next.as_slice() {
            ["{" | "impl", ..] => !statement_has(source, token.line, "SAFETY:"),
            _ if token.place.documented_elsewhere || token.place.in_test || source.is_test() => {
                false
            }
            ["trait", ..] => !statement_has(source, token.line, "# Safety"),
            _ if defines_fn(&next) => !statement_has(source, token.line, "# Safety"),
            _ => false,
        };
        if missing {
            let wanted = if matches!(next[0], "{" | "impl") { "// SAFETY:" } else { "# Safety" };
            let text = format!("unsafe {} without `{wanted}` above it", next[0]);
            problems.push(Problem::new(&source.path, token.line, text));
        }
    }
    problems.extend(empty_words(source));
    problems
}

/// Whether the file holds unsafe code.
pub(crate) fn is_used(source: &Source) -> bool {
    // As a bare word, macros that read code name it too.
    let begins = ["{", "(", "fn", "impl", "trait", "extern"];
    let mut pairs = source.tokens.windows(2);
    pairs.any(|pair| pair[0].text == "unsafe" && begins.contains(&pair[1].text.as_str()))
}

/// Whether what follows `unsafe` defines a function, rather than naming its type.
fn defines_fn(next: &[&str]) -> bool {
    let after_abi = match next {
        ["extern", "\"", "\"", rest @ ..] | ["extern", rest @ ..] => rest,
        rest => rest,
    };
    matches!(after_abi, ["fn", name, ..] if *name != "(")
}

/// Whether the statement or item that begins at or above `line` has a comment with `mark`.
fn statement_has(source: &Source, line: usize, mark: &str) -> bool {
    let ends = |line: &Line| line.code.trim_end().ends_with([';', '{', '}']);
    let mut lines = source.upwards(line);
    let own = lines.next().is_some_and(|line| line.comment.contains(mark));
    own || lines.take_while(|line| !ends(line)).any(|line| line.comment.contains(mark))
}

fn empty_words(source: &Source) -> impl Iterator<Item = Problem> + '_ {
    let commented = (1..=source.lines.len()).filter(|line| {
        let comment = &source.lines[line - 1].comment;
        comment.contains("SAFETY:") || comment.contains("# Safety")
    });
    commented.flat_map(move |line| {
        let comment = source.comment_from(line).to_lowercase();
        EMPTY_WORDS.iter().filter(move |word| comment.contains(**word)).map(move |word| {
            Problem::new(&source.path, line, format!("`{word}` is no reason for soundness"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{Source, check, is_used};

    fn problems(text: &str) -> usize {
        check(&Source::new("crates/x/src/a.rs", text)).len()
    }

    #[test]
    fn blocks() {
        assert_eq!(problems("// SAFETY: by I1.\nlet a = unsafe { f() };"), 0);
        assert_eq!(problems("// SAFETY: by I1.\nlet a =\n    g(1,\n    unsafe { f() });"), 0);
        assert_eq!(problems("let a = unsafe { f() };"), 1);
        assert_eq!(problems("// SAFETY: by I1.\nlet b = 1;\nlet a = unsafe { f() };"), 1);
        assert_eq!(problems("// SAFETY: by I1.\n\nlet a = unsafe { f() };"), 1);
        assert_eq!(problems("let a = \"unsafe { f() }\";"), 0);
    }

    #[test]
    fn impls() {
        assert_eq!(problems("// SAFETY: owns no thread's data.\nunsafe impl Send for G {}"), 0);
        assert_eq!(problems("unsafe impl Send for G {}"), 1);
    }

    #[test]
    fn functions() {
        assert_eq!(
            problems("/// Does.\n///\n/// # Safety\n/// * a\n#[inline]\npub unsafe fn f() {}"),
            0
        );
        assert_eq!(problems("/// Does.\npub unsafe fn f() {}"), 1);
        assert_eq!(problems("/// Does.\nunsafe extern \"C\" fn f() {}"), 1);
        assert_eq!(problems("type F = unsafe extern \"C\" fn(u8);\nlet a: unsafe fn() = b;"), 0);
        assert_eq!(problems("// SAFETY: by I1.\nunsafe impl A for B { unsafe fn f() {} }"), 0);
        assert_eq!(problems("#[unsafe(no_mangle)]\nextern \"C\" fn f() {}"), 0);
        assert_eq!(problems("pub unsafe trait T {}"), 1);
    }

    #[test]
    fn use_is_told_from_mention() {
        let used = |text: &str| is_used(&Source::new("crates/x/src/a.rs", text));
        assert!(used("let a = unsafe { f() };") && used("#[unsafe(naked)] fn f() {}"));
        assert!(!used("#![forbid(unsafe_code)] parse::<Token![unsafe]>(); // unsafe { }"));
    }

    #[test]
    fn empty_words() {
        assert_eq!(problems("// SAFETY: it is\n// obviously fine.\nlet a = unsafe { f() };"), 1);
        assert_eq!(problems("// This is obviously a comment of another kind.\nf();"), 0);
    }
}
