//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::{duration, exit, output};

/// Runs a program while a lock is held, and looks after locks.
#[derive(Debug, Parser)]
#[command(name = "lockkit", bin_name = "lockkit", version, after_long_help = exit::help())]
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

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Hold a lock while a program runs
    Run(Run),
    /// Take a lock and print an id that renews and releases it
    Acquire(Acquire),
    /// Prolong a lock taken by `acquire`
    Renew(Renew),
    /// Release a lock taken by `acquire`
    Release(Release),
    /// List who holds and who waits
    Ls(Ls),
    /// Take a lock away from whoever holds it
    Break(Break),
    /// Ask the backend whether it is well
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
        command: Option<String>,
    },
}

/// How to take a lock.
#[derive(Debug, ClapArgs)]
pub(crate) struct Taking {
    /// Name of the lock: any text of 1 to 200 bytes
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Give up after this long; 0 tries once [default: wait for ever]
    #[arg(short, long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
    /// Give up at once if somebody else holds the lock
    #[arg(short, long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Exit code if the lock was not acquired
    #[arg(short = 'E', long, value_name = "N", default_value_t = exit::CONFLICT)]
    pub(crate) conflict_exit_code: u8,
    /// The lease: how long the lock outlives a holder that is cut off
    #[arg(short, long, value_name = "DUR", default_value = "30s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    /// Wait in strict order of arrival
    #[arg(long)]
    pub(crate) fair: bool,
    /// Who holds the lock, for people [default: the name of the program]
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
}

/// Hold a lock while a program runs
///
/// Waits for the lock NAME, runs CMD, and releases the lock when CMD ends. Processes that CMD
/// leaves behind do not keep it. CMD finds LOCKKIT_KEY, LOCKKIT_FENCING_TOKEN, LOCKKIT_BACKEND and
/// LOCKKIT_HOLDER in its environment. Signals are passed on to CMD and its process group.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = exit::help())]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) taking: Taking,
    /// Time from TERM to KILL when the lock is lost, or after a second INT or TERM
    #[arg(short, long, value_name = "DUR", default_value = "5s", value_parser = duration::parse)]
    pub(crate) kill_after: Duration,
    /// What happens to CMD when the lock is lost
    #[arg(long, value_enum, default_value_t, value_name = "ACTION")]
    pub(crate) on_lost: OnLost,
    /// Exit code if the lock was lost while CMD ran
    #[arg(long, value_name = "N", default_value_t = exit::LOST)]
    pub(crate) lost_exit_code: u8,
    /// Leave CMD in the foreground of the terminal, for interactive programs
    ///
    /// Without it CMD has a process group of its own, so that all of it can be signalled, and
    /// cannot read from the terminal.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Run this text through $SHELL -c
    #[arg(short = 'c', long, value_name = "STRING", conflicts_with = "command")]
    pub(crate) shell: Option<OsString>,
    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        trailing_var_arg = true,
        num_args = 1..,
        required_unless_present = "shell"
    )]
    pub(crate) command: Vec<OsString>,
}

/// What happens to CMD when the lock is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// TERM at once, KILL after the grace
    #[default]
    Kill,
    /// One line on stderr
    Warn,
}

/// Take a lock and print an id that renews and releases it
///
/// The lock is held for --ttl from now, whatever becomes of this process, unless `renew` prolongs
/// or `release` ends it. The id is a capability: whoever knows it can release the lock.
#[derive(Debug, ClapArgs)]
pub(crate) struct Acquire {
    #[command(flatten)]
    pub(crate) taking: Taking,
}

/// Prolong a lock taken by `acquire`
///
/// Exits with 79 if ID holds nothing any more: the lock ran out, was broken or was released.
#[derive(Debug, ClapArgs)]
pub(crate) struct Renew {
    /// What `acquire` printed
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// How long it is held from now
    #[arg(short, long, value_name = "DUR", default_value = "30s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
}

/// Release a lock taken by `acquire`
///
/// Exits with 79 if ID holds nothing any more: the lock ran out, was broken or was released.
#[derive(Debug, ClapArgs)]
pub(crate) struct Release {
    /// What `acquire` printed
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

/// List who holds and who waits, in order
#[derive(Debug, ClapArgs)]
pub(crate) struct Ls {
    /// Only names that begin with this
    #[arg(value_name = "PREFIX", default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Keep on listing, once a second or every DUR
    #[arg(
        short,
        long,
        value_name = "DUR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1s",
        value_parser = duration::parse
    )]
    pub(crate) watch: Option<Duration>,
}

/// Take a lock away from whoever holds it
///
/// Asks first if standard input is a terminal. `lockkit run` on the other side ends its CMD.
#[derive(Debug, ClapArgs)]
pub(crate) struct Break {
    /// Name of the lock
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
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
