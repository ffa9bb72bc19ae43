//! The shim of the tests, as the product's binary has it under its hidden command.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(command), Some(dir)) if command == "shim" => run::local::shim(dir.as_ref()),
        _ => ExitCode::from(2),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::from(2)
}
