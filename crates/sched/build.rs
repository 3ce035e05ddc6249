//! `links = "gosched"` needs a build script; it keeps two versions out of one binary.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
