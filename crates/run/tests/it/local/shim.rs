//! What makes the shims of the tests, as the product's binary does under its hidden command; with an
//! attempt folder it is a shim itself.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(command), None) if command == "shim" => run::local::serve_forks(),
        (Some(command), Some(dir)) if command == "shim" => run::local::shim(dir.as_ref()),
        _ => ExitCode::from(2),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::from(2)
}
