//! The crates of the workspace, as `cargo metadata` reports them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// The workspace and where it lies.
pub(crate) struct Workspace {
    /// The root of the repository.
    pub(crate) root: PathBuf,
    /// Where cargo builds.
    pub(crate) target: PathBuf,
    /// Its members.
    pub(crate) packages: Vec<Package>,
}

/// A member of the workspace.
pub(crate) struct Package {
    /// The name in its manifest.
    pub(crate) name: String,
    /// Its folder, from the root.
    pub(crate) folder: String,
    /// What it depends on, inside the workspace and outside.
    pub(crate) dependencies: Vec<Dependency>,
    /// The names of its integration tests.
    pub(crate) tests: Vec<String>,
}

/// An edge of the crate graph.
pub(crate) struct Dependency {
    /// The package pointed at.
    pub(crate) name: String,
    /// True for `[dev-dependencies]`.
    pub(crate) dev: bool,
}

/// The cargo that started us, else the one on the path.
pub(crate) fn cargo() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

impl Workspace {
    pub(crate) fn load() -> Result<Workspace, String> {
        let root = root();
        let output = Command::new(cargo())
            .args(["metadata", "--no-deps", "--format-version=1"])
            .current_dir(&root)
            .output()
            .map_err(|error| format!("cargo metadata: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("cargo metadata: {error}"))?;
        let packages =
            list(&metadata["packages"]).iter().map(|package| read(package, &root)).collect();
        let target = PathBuf::from(text(&metadata["target_directory"]));
        Ok(Workspace { root, target, packages })
    }

    pub(crate) fn package_in(&self, folder: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.folder == folder)
    }
}

impl Package {
    /// The integration tests that are loom models.
    pub(crate) fn loom_tests(&self) -> Vec<&str> {
        self.tests.iter().map(String::as_str).filter(|name| name.starts_with("loom_")).collect()
    }

    /// Whether any file of the package holds a test or an example in its documentation.
    pub(crate) fn has_tests(&self, root: &Path) -> bool {
        let marks = ["#[test]", "::test]", "::test(", "/// ```", "//! ```"];
        files_below(&root.join(&self.folder)).iter().any(|path| {
            let text = fs::read_to_string(path).unwrap_or_default();
            path.extension().is_some_and(|ext| ext == "rs")
                && marks.iter().any(|mark| text.contains(mark))
        })
    }
}

/// The root of the repository: the folder above this crate's.
pub(crate) fn root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    here.parent().map(Path::to_path_buf).unwrap_or(here)
}

/// Every file below `folder`, sorted; what git and cargo generate is left out.
///
/// Walks by itself, since git need not be installed where CI runs.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let generated =
                [".git", "target", "report"].iter().any(|name| entry.file_name() == *name);
            if generated {
                continue;
            } else if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}

fn read(package: &Value, root: &Path) -> Package {
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    let folder = manifest.parent().unwrap_or(root);
    let folder = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
    let is_test = |target: &&Value| list(&target["kind"]).iter().any(|kind| kind == "test");
    let tests = list(&package["targets"]).iter().filter(is_test);
    let dependencies = list(&package["dependencies"]).iter().map(|dependency| Dependency {
        name: text(&dependency["name"]),
        dev: dependency["kind"] == "dev",
    });
    Package {
        name: text(&package["name"]),
        folder,
        dependencies: dependencies.collect(),
        tests: tests.map(|target| text(&target["name"])).collect(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
