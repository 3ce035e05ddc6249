//! Links from one page of the repository to another, and tables that checks read.

use std::fs;
use std::path::Path;

use super::Problem;

/// Local links that lead nowhere.
pub(crate) fn check(root: &Path, path: &str, text: &str) -> Vec<Problem> {
    let folder = root.join(path).parent().map(Path::to_path_buf).unwrap_or_default();
    let mut problems = Vec::new();
    for (line, target) in links(text) {
        let outside =
            ["http://", "https://", "mailto:"].iter().any(|mark| target.starts_with(mark));
        if outside {
            continue;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
        let full = if file.is_empty() { root.join(path) } else { folder.join(file) };
        if !full.exists() {
            problems.push(Problem::new(path, line, format!("the link {target} leads nowhere")));
        } else if !anchor.is_empty() && !has_heading(&full, anchor) {
            problems.push(Problem::new(path, line, format!("{target} names no heading")));
        }
    }
    problems
}

/// The cells of the first table below the heading `heading`, without its head.
pub(crate) fn table(text: &str, heading: &str) -> Vec<Vec<String>> {
    let section = text.lines().skip_while(|line| line.trim_start_matches('#').trim() != heading);
    let rows = section.skip(1).skip_while(|line| !line.starts_with('|') && !line.starts_with('#'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        row.trim_matches(['|', ' ']).split('|').map(|cell| cell.trim().to_owned()).collect()
    })
    .collect()
}

/// What stands between backquotes.
pub(crate) fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The targets of all links, with their lines, outside code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let prose: String = line.split('`').step_by(2).collect();
            let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            let definition = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
            let targets = targets.chain(definition.map(|(_, target)| target));
            found.extend(targets.map(|target| (at + 1, target.trim().to_owned())));
        }
    }
    found
}

fn has_heading(path: &Path, anchor: &str) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| slug(line.trim_start_matches('#').trim())).any(|slug| slug == anchor)
}

/// The anchor that a heading gets on a rendered page.
fn slug(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .flat_map(|c| match c {
            ' ' => Some('-'),
            _ => (c.is_alphanumeric() || c == '-' || c == '_').then_some(c),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{check, links, quoted, slug, table};

    #[test]
    fn links_outside_code_are_found() {
        let text = "[a](x.md) and `[b](y.md)`\n```\n[c](z.md)\n```\n[d]: w.md#part\n";
        assert_eq!(links(text), [(1, "x.md".to_owned()), (5, "w.md#part".to_owned())]);
    }

    #[test]
    fn targets_must_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = |text: &str| check(root, "a.md", text).len();
        assert_eq!(found("[a](Cargo.toml) [b](src/tidy) [c](https://x.org/none)"), 0);
        assert_eq!(found("[a](none.md)"), 1);
        assert_eq!(found("[a](Cargo.toml#none)"), 1);
    }

    #[test]
    fn tables_are_read() {
        let text = "## Files\n\nWords.\n\n| file | why |\n| --- | --- |\n| `a/**` | b |\n| `c` | d |\n\nEnd";
        assert_eq!(table(text, "Files"), [["`a/**`", "b"], ["`c`", "d"]]);
        assert!(table(text, "None").is_empty());
        assert!(table("## Files\n## Next\n| a |\n| - |\n| b |", "Files").is_empty());
        assert_eq!(quoted("`a`, `b`"), ["a", "b"]);
        assert_eq!(slug("Lock order, in full"), "lock-order-in-full");
    }
}
