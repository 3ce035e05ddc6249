//! Builds what a Rust test can't contain: C++ code, and shared libraries with thread-locals.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=tests/fixtures");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    cc::Build::new().cpp(true).file("tests/fixtures/exceptions.cc").compile("exceptions");

    // Loaded at start: these have their thread-locals in the static area of every block.
    let own_std = rust_library(&out, "libstart_own_std.so", &[]);
    let shared_std = rust_library(&out, "libstart_shared_std.so", &["-Cprefer-dynamic"]);
    println!("cargo::rustc-link-arg-tests=-Wl,--no-as-needed");
    println!("cargo::rustc-link-arg-tests={}", own_std.display());
    println!("cargo::rustc-link-arg-tests={}", shared_std.display());
    println!("cargo::rustc-link-arg-tests=-Wl,--as-needed");
    println!("cargo::rustc-link-arg-tests=-Wl,-rpath,{}", out.display());

    // Loaded by a step.
    let late = rust_library(&out, "liblate.so", &[]);
    println!("cargo::rustc-env=LATE_LIBRARY={}", late.display());
    for (name, model) in [("static", "initial-exec"), ("dynamic", "global-dynamic")] {
        let path = c_library(&out, name, model);
        println!("cargo::rustc-env=LATE_{}_LIBRARY={}", name.to_uppercase(), path.display());
    }
}

/// A Rust shared library with a C interface; `-Cprefer-dynamic` makes it use the toolchain's
/// shared std, whose thread-locals are then a module of their own.
fn rust_library(out: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let rustc = std::env::var_os("RUSTC").expect("cargo sets RUSTC");
    let path = out.join(name);
    let mut build = Command::new(&rustc);
    build
        .args(["--edition=2024", "--crate-type=cdylib", "tests/fixtures/counter.rs", "-o"])
        .arg(&path);
    build.args(flags).arg(format!("-Clink-arg=-Wl,-soname,{name}"));
    if !flags.is_empty() {
        let libraries = Command::new(&rustc).args(["--print", "target-libdir"]).output();
        let libraries = libraries.expect("rustc runs").stdout;
        let libraries = String::from_utf8(libraries).expect("a path in UTF-8");
        build.arg(format!("-Clink-arg=-Wl,-rpath,{}", libraries.trim()));
    }
    run(&mut build);
    path
}

/// A C library. With the model `initial-exec` its thread-locals are in the static area although it
/// is loaded late, as those of libgomp or libGL are.
fn c_library(out: &Path, name: &str, model: &str) -> PathBuf {
    let path = out.join(format!("liblate_{name}.so"));
    let mut build = cc::Build::new().get_compiler().to_command();
    build.args(["-shared", "-fPIC", "tests/fixtures/late.c", "-o"]).arg(&path);
    run(build.arg(format!("-ftls-model={model}")));
    path
}

fn run(command: &mut Command) {
    let status = command.status().expect("the compiler runs");
    assert!(status.success(), "{command:?}: {status}");
}
