//! The `lakescope` program; everything is in the library beside it.

#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    lakescope::main()
}
