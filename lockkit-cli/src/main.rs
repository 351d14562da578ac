//! `lockkit`: runs a program while a lock is held, and looks after locks.

#[cfg(not(unix))]
compile_error!("the lockkit command needs Unix process groups and signals");

mod about;
mod args;
mod child;
mod duration;
mod evict;
mod examples;
mod exit;
mod fence;
mod held;
mod hold;
mod kind;
mod latch;
mod ls;
mod man;
mod open;
mod output;
mod patience;
mod request_release;
mod resize;
mod run;
mod shown;
mod signals;
mod supervise;
mod table;
mod taking;
mod wait_line;

use std::process::ExitCode;

use args::{Args, Command};
use exit::Failure;
use output::Output;

fn main() -> ExitCode {
    if let Some(status) = child::shim() {
        return status.into();
    }
    let (args, output) = match args::parse() {
        Ok(args) => {
            let output = Output::new(&args.global);
            (args, output)
        }
        Err(status) => return status.into(),
    };
    let status = dispatch(args, &output).unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.status
    });
    status.into()
}

fn dispatch(args: Args, output: &Output) -> Result<u8, Failure> {
    let Args { global, command } = args;
    match command {
        Command::Backends => about::backends(output),
        Command::Completions { shell } => about::completions(shell),
        Command::Man { command } => man::page(&command),
        Command::Run(run) => open::block_on(run::run(run, &global, output)),
        Command::Acquire(acquire) => open::block_on(hold::acquire(acquire, &global, output)),
        Command::Renew(renew) => open::block_on(hold::renew(renew, &global, output)),
        Command::Release(release) => open::block_on(hold::release(release, &global, output)),
        Command::Latch(latch) => open::block_on(latch::latch(latch, &global, output)),
        Command::Ls(ls) => open::block_on(ls::ls(ls, &global, output)),
        Command::RequestRelease(request) => {
            open::block_on(request_release::request_release(request, &global, output))
        }
        Command::Break(evict) => open::block_on(evict::evict(evict, &global, output)),
        Command::Resize(resize) => open::block_on(resize::resize(resize, &global, output)),
        Command::Ping => open::block_on(about::ping(&global, output)),
    }
}
