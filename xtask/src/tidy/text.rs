//! Rules for all text files: open points have a number, paths work everywhere.

use super::Problem;
use super::source::Source;

/// Folders at the root of a machine, which no other machine has in the same way.
const MACHINE_FOLDERS: &[&str] = &["home", "root", "work"];

/// Absolute paths of one machine.
pub(crate) fn machine_paths(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for folder in MACHINE_FOLDERS {
            let folder = format!("/{folder}/");
            let begins = |(at, _): &(usize, &str)| {
                let before = line[..*at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "._-/~*})>".contains(c))
            };
            if line.match_indices(&folder).any(|found| begins(&found)) {
                let text = format!("a path below {folder} exists on one machine only");
                problems.push(Problem::new(path, at + 1, text));
            }
        }
    }
    problems
}

/// Open points without a number, in the comments of Rust code.
pub(crate) fn todos_in_comments(source: &Source) -> Vec<Problem> {
    let comments = source.lines.iter().map(|line| line.comment.as_str());
    todos(&source.path, comments)
}

/// Open points without a number, in any line.
pub(crate) fn todos_in_text(path: &str, text: &str) -> Vec<Problem> {
    todos(path, text.lines())
}

fn todos(path: &str, lines: impl Iterator<Item = impl AsRef<str>>) -> Vec<Problem> {
    let numbered = |rest: &str| {
        let number = rest.strip_prefix("(#").and_then(|rest| rest.split(')').next());
        number.is_some_and(|n| n == "n" || (!n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())))
    };
    let word = ["TO", "DO"].concat();
    let open = |line: &str| line.split(&word).skip(1).any(|rest| !numbered(rest));
    let lines = lines.enumerate().filter(|(_, line)| open(line.as_ref()));
    let text = format!("write `{word}(#n)` with the number of an issue");
    lines.map(|(at, _)| Problem::new(path, at + 1, &text)).collect()
}

#[cfg(test)]
mod tests {
    use super::{machine_paths, todos_in_text};

    #[test]
    fn paths() {
        let found = |text: &str| machine_paths("a.md", text).len();
        assert_eq!(found(&["see /ho", "me/me/x"].concat()), 1);
        assert_eq!(found(&["\"/wo", "rk/x\""].concat()), 1);
        assert_eq!(found("target/work/x and ~/work/x and https://x.org/work/"), 0);
        assert_eq!(found("/proc/self/maps"), 0);
    }

    #[test]
    fn open_points() {
        let found = |text: &str| todos_in_text("a.md", &text.replace('@', "TODO")).len();
        assert_eq!(found("@(#12): later"), 0);
        assert_eq!(found("@: later"), 1);
        assert_eq!(found("@(#): later"), 1);
        assert_eq!(found("@(#1) and @"), 1);
    }
}
