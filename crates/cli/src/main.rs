//! The `duel` command. All of it is in the library beside it.

fn main() -> std::process::ExitCode {
    duel_cli::main()
}
