//! The tables of ARCHITECTURE.md agree with the code.

use std::path::Path;

use super::source::Source;
use super::{Problem, layers, markdown, orderings, unsafety};

const PAGE: &str = "ARCHITECTURE.md";

/// Compares the page with the files; `sources` are all Rust files of the repository.
pub(crate) fn check(root: &Path, page: &str, sources: &[Source]) -> Vec<Problem> {
    let mut problems = layer_table(page);
    let pick = |used: fn(&Source) -> bool| sources.iter().filter(|file| used(file)).collect();
    let unsafe_files: Vec<&Source> = pick(|file| !file.is_test() && unsafety::is_used(file));
    let ordering_files: Vec<&Source> = pick(orderings::is_used);
    problems.extend(file_table(root, page, "Files with unsafe code", &unsafe_files));
    problems.extend(file_table(root, page, "Files with atomic orderings", &ordering_files));
    problems
}

fn layer_table(page: &str) -> Vec<Problem> {
    let quoted: Vec<Vec<String>> = markdown::table(page, "Layers")
        .iter()
        .map(|row| row.get(1).map(|cell| markdown::quoted(cell)).unwrap_or_default())
        .collect();
    if quoted == layers::LAYERS {
        return Vec::new();
    }
    let text = "the table below `Layers` differs from LAYERS in xtask/src/tidy/layers.rs";
    vec![Problem::new(PAGE, 0, text)]
}

/// Checks that each of `used` is named below `heading`, and that each exact name exists.
fn file_table(root: &Path, page: &str, heading: &str, used: &[&Source]) -> Vec<Problem> {
    let rows = markdown::table(page, heading);
    let entries: Vec<String> =
        rows.iter().filter_map(|row| row.first()).flat_map(|cell| markdown::quoted(cell)).collect();
    let mut problems: Vec<Problem> = used
        .iter()
        .filter(|file| !entries.iter().any(|entry| matches(entry, &file.path)))
        .map(|file| {
            Problem::new(&file.path, 0, format!("{PAGE} does not name it below `{heading}`"))
        })
        .collect();
    for entry in entries {
        if !root.join(entry.trim_end_matches("/**")).exists() {
            let text = format!("`{entry}` below `{heading}` does not exist");
            problems.push(Problem::new(PAGE, 0, text));
        }
    }
    problems
}

/// An entry is the path of a file, or a folder followed by `/**`.
fn matches(entry: &str, path: &str) -> bool {
    match entry.strip_suffix("**") {
        Some(folder) => path.starts_with(folder),
        None => entry == path,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Source, file_table, layer_table};

    fn files(entry: &str, path: &str) -> usize {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = format!("## Files\n\n| file | why |\n| --- | --- |\n| `{entry}` | x |\n");
        file_table(root, &page, "Files", &[&Source::new(path, "")]).len()
    }

    #[test]
    fn files_must_be_named() {
        assert_eq!(files("src/**", "src/tidy/a.rs"), 0);
        assert_eq!(files("src/main.rs", "src/main.rs"), 0);
        assert_eq!(files("src/main.rs", "src/tidy.rs"), 1);
    }

    #[test]
    fn names_must_exist() {
        assert_eq!(files("src/none.rs", "src/none.rs"), 1);
        assert_eq!(files("none/**", "none/a.rs"), 1);
    }

    #[test]
    fn layers_must_agree() {
        assert_eq!(layer_table("## Layers\n\n| n | crates |\n| - | - |\n| 1 | `base` |").len(), 1);
    }
}
