//! The command line.

mod holding;
mod latch;
mod operator;
mod taking;

use clap::error::ErrorKind;
use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::{examples, exit, output};

pub(crate) use holding::{Acquire, OnLost, OnRequest, Release, Renew, Run};
pub(crate) use latch::{Down, LatchCommand, LatchName, Set, Wait};
pub(crate) use operator::{Break, KindWord, Ls, RequestRelease, Resize};
pub(crate) use taking::{Choice, Patience, Taking};

/// Runs a program while a lock is held, and looks after locks.
#[derive(Debug, Parser)]
#[command(
    name = "lockkit",
    bin_name = "lockkit",
    version,
    after_long_help = format!("{}\n\n{}", examples::help(""), exit::help())
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, ClapArgs)]
pub(crate) struct Global {
    /// Where the locks are, for example sqlite:/var/lib/locks.db
    ///
    /// Taken from LOCKKIT_URL if not given, which also keeps a password out of the list of
    /// processes; an SQLite file in your state directory otherwise.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Global options"
    )]
    pub(crate) url: Option<String>,
    /// Say nothing but errors
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Global options"
    )]
    pub(crate) quiet: bool,
    /// Say more
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Global options")]
    pub(crate) verbose: u8,
    /// How results, events and errors are written
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        hide_possible_values = true,
        help_heading = "Global options"
    )]
    pub(crate) format: Format,
}

/// How results, events and errors are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs, one JSON value a line
    Json,
}

/// The commands; those without a text here have it beside their arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Acquire(Acquire),
    Renew(Renew),
    Release(Release),
    #[command(
        subcommand,
        after_long_help = format!("{}\n\n{}", examples::help("latch"), exit::help())
    )]
    Latch(LatchCommand),
    Ls(Ls),
    RequestRelease(RequestRelease),
    Break(Break),
    Resize(Resize),
    /// Ask the backend whether it is well
    ///
    /// Prints how long an answer takes, and what the backend says of itself and of each of its
    /// servers. With --format json, an object with backend, latency_us, facts and servers, which is
    /// an array of the facts about each.
    Ping,
    /// List the backends that are compiled in, and what each promises
    Backends,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page, to be read with `lockkit man | man -l -`
    Man {
        /// The page of one command
        command: Vec<String>,
    },
}

/// Reads the command line; help, version and mistakes are written here, and the status returned.
pub(crate) fn parse() -> Result<Args, u8> {
    Args::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            exit::OK
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            exit::USAGE
        }
        _ => {
            output::line(&one_line(&error));
            exit::USAGE
        }
    })
}

/// What clap says in a paragraph or three, as one line: the mistake, its tip, where help is.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let words = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut paragraphs = text.split("\n\n").map(words);
    let mistake = paragraphs.next().unwrap_or_default();
    let tip = paragraphs.find_map(|words| Some(words.strip_prefix("tip: ")?.to_owned()));
    let mistake = mistake.strip_prefix("error: ").unwrap_or(&mistake);
    match tip {
        Some(tip) => format!("{mistake}; {tip}"),
        None => format!("{mistake}; see --help"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_follows_the_program_belongs_to_it() {
        for line in ["lockkit run x ls -l -q", "lockkit run x -- ls -l -q"] {
            let args = Args::try_parse_from(line.split(' ')).unwrap();
            let Command::Run(run) = args.command else {
                panic!("not run")
            };
            assert_eq!(run.command, ["ls", "-l", "-q"], "{line}");
            assert!(!args.global.quiet);
        }
    }

    #[test]
    fn mistakes_are_one_line_with_the_cure() {
        let said = |line: &str| one_line(&Args::try_parse_from(line.split(' ')).unwrap_err());
        assert!(said("lockkit run x -w 10 true").ends_with("write 10s for seconds; see --help"));
        assert!(said("lockkit run x --wiat 10s true").contains("--wait"));
        assert!(!said("lockkit run").contains('\n'));
    }
}
