//! `cargo start`: builds pages and binary, serves the bundled samples and shows one in the browser.

use anyhow::Result;

/// The bundled sample that is shown.
const SAMPLE: &str = "/applications/app-20261129210950-0000";

fn main() -> Result<()> {
    match start::pages::missing() {
        None => start::pages::build()?,
        Some(why) => println!("{why}; the pages will run no script"),
    }
    let mut run = start::cargo();
    run.args(["run", "--profile", "quick", "--locked", "--no-default-features", "--features", "serve", "--"]);
    run.args(["serve", "samples", "--no-auth", "--listen", "127.0.0.1:0", &format!("--open={SAMPLE}")]);
    run.arg("--data-dir").arg(start::target_folder().join("start"));
    start::run(run.current_dir(start::root()))
}
