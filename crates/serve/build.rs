//! The embedded pages change when they are built anew.

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist");
}
