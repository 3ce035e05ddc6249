//! Checks of the source that no lint makes.
//!
//! Each check is a function from what it reads to a list of problems, with tests that show it
//! fail. `source` is the reading of Rust files that they share.

mod architecture;
mod layers;
mod markdown;
mod orderings;
mod pages;
mod source;
mod text;
mod unsafety;

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use crate::plan;
use crate::report::Report;
use crate::workspace::{self, Workspace};
use source::Source;

/// Files larger than this are data, not text.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// One place that breaks a rule.
#[derive(Debug, PartialEq)]
pub(crate) struct Problem {
    file: String,
    /// Counted from 1; 0 when the whole file is meant.
    line: usize,
    text: String,
}

impl Problem {
    pub(crate) fn new(file: &str, line: usize, text: impl Into<String>) -> Problem {
        Problem { file: file.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem { file, line: 0, text } => write!(f, "{file}: {text}"),
            Problem { file, line, text } => write!(f, "{file}:{line}: {text}"),
        }
    }
}

/// A text file and its path from the root.
struct TextFile {
    path: String,
    text: String,
}

/// All checks on the whole repository.
pub(crate) fn report(workspace: &Workspace) -> Report {
    let root = &workspace.root;
    let files = read_all(workspace);
    let sources: Vec<Source> = files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && !is_left(&file.path))
        .map(|file| Source::new(&file.path, &file.text))
        .collect();
    let page = files.iter().find(|file| file.path == "ARCHITECTURE.md");
    let page = page.map_or("", |file| &file.text);
    let of_sources = |check: fn(&Source) -> Vec<Problem>| sources.iter().flat_map(check).collect();
    let pages = || files.iter().filter(|file| file.path.ends_with(".md"));
    let other = || files.iter().filter(|file| !file.path.ends_with(".rs"));
    let checks: [(&str, Vec<Problem>); 8] = [
        ("layers", layers::check(&workspace.packages)),
        ("tables of ARCHITECTURE.md", architecture::check(root, page, &sources)),
        ("reasons of unsafe code", of_sources(unsafety::check)),
        ("reasons of orderings", of_sources(orderings::check)),
        ("pages, length, printing, ignored tests", of_sources(pages::check)),
        (
            "open points",
            other()
                .flat_map(|file| text::todos_in_text(&file.path, &file.text))
                .chain(sources.iter().flat_map(text::todos_in_comments))
                .collect(),
        ),
        ("links", pages().flat_map(|file| markdown::check(root, &file.path, &file.text)).collect()),
        (
            "machine paths",
            files.iter().flat_map(|file| text::machine_paths(&file.path, &file.text)).collect(),
        ),
    ];
    println!("{} text files, {} of them Rust", files.len(), sources.len());
    let mut report = Report::default();
    for (name, problems) in checks {
        println!("{name}: {} problems", problems.len());
        report.passed += usize::from(problems.is_empty());
        report.failures.extend(problems.iter().map(Problem::to_string));
    }
    report
}

/// Whether the file belongs to a crate that CI does not build.
fn is_left(path: &str) -> bool {
    plan::EXTRA_CRATES.iter().any(|extra| {
        matches!(extra.treatment, plan::Treatment::Leave(_))
            && Path::new(path).starts_with(extra.folder)
    })
}

fn read_all(workspace: &Workspace) -> Vec<TextFile> {
    let root = &workspace.root;
    let small =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.len() <= TEXT_BYTES_MAX);
    let paths = workspace::files_below(root).into_iter().filter(small);
    paths
        .filter_map(|path| {
            let text = fs::read_to_string(&path).ok()?;
            let path = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            Some(TextFile { path, text })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::report;
    use crate::workspace::Workspace;

    #[test]
    fn the_repository_is_tidy() {
        let workspace = Workspace::load().expect("cargo metadata works");
        assert_eq!(report(&workspace).failures, Vec::<String>::new());
    }
}
