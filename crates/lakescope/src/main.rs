//! The `lakescope` program; everything is in the library beside it.

fn main() -> std::process::ExitCode {
    lakescope::main()
}
