//! The `remora` command, which has several modes.

use std::process::ExitCode;

use clap::Parser;
use remora_server::cli::{self, CommandLine, Mode};

/// mimalloc lets threads free each other's memory without a lock, which a search server does all
/// the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(sentence) = remora_server::missing_features() {
        eprintln!("{sentence}");
        return ExitCode::from(3);
    }
    match run(CommandLine::parse().mode) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("remora: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mode: Mode) -> remora_server::Result<ExitCode> {
    match mode {
        Mode::Demo(options) => cli::demo(&options),
        Mode::Serve(options) => cli::serve(&options),
        Mode::Import(options) => cli::import(&options),
        Mode::Export(options) => cli::export(&options),
        Mode::Shell(options) => cli::shell(&options),
        Mode::Check(options) => cli::check(&options),
        Mode::Dump(command) => cli::dump(&command),
        Mode::Compare(options) => Ok(cli::compare(&options)),
    }
}
