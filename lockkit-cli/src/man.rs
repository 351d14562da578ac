//! `lockkit man`: the manual, made from the same description as the command line.

use std::io;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::Args;
use crate::examples;
use crate::exit::{self, Failure};
use crate::output;

const ENVIRONMENT: [(&str, &str); 8] = [
    ("LOCKKIT_URL", "Where the locks are, if --url is not given."),
    (
        "XDG_STATE_HOME",
        "Where the default file, lockkit/locks.db, is; ~/.local/state if not set.",
    ),
    (
        "LOCKKIT_KEY",
        "Set for CMD: the name of the lock; the innermost one of nested runs.",
    ),
    (
        "LOCKKIT_FENCING_TOKEN",
        "Set for CMD: a number that rises with every holder of the lock; with --shared, that of the last --exclusive holder. Let what CMD writes to refuse lower ones. Not set on a backend without such numbers, such as redis://HOST?strategy=simple, whatever the run around this one has.",
    ),
    (
        "LOCKKIT_MODE",
        "Set for CMD: how the lock is held: exclusive, shared, 2 of 5, segment 3 of 8.",
    ),
    (
        "LOCKKIT_SEGMENT",
        "Set for CMD if the lock is a segment: which one, counted from 0. Not set otherwise, whatever the run around this one has.",
    ),
    (
        "LOCKKIT_BACKEND",
        "Set for CMD: the backend that holds the lock.",
    ),
    (
        "LOCKKIT_HOLDER",
        "Set for CMD: who holds the lock, as others see it.",
    ),
];

const SIGNALS: [&str; 5] = [
    "While lockkit waits for the lock, INT, TERM, HUP, QUIT, USR1 and USR2 withdraw it: CMD is never started, and the exit code is 128+n.",
    "While CMD runs, these and WINCH, TSTP and CONT are passed on to its process group (to CMD alone with --foreground). TSTP stops CMD; the lock stays held. A second INT or TERM is followed by KILL after --kill-after. Signals that were ignored when lockkit started stay ignored.",
    "When the lock is lost, CMD and its process group get TERM at once and KILL after --kill-after, and lockkit exits with 79 whatever CMD returns. Choose --ttl longer than CMD needs to stop.",
    "When somebody asks for the lock with request-release, lockkit says so; with --on-request term, CMD and its process group get TERM, and KILL after --kill-after, and lockkit exits with what CMD returns.",
    "When lockkit itself is killed, CMD is killed by the kernel (on Linux; not if CMD changes its user). Processes that CMD has started are not; on the SQLite backend the lock stays theirs until they end or the lease runs out, whichever comes first.",
];

/// Prints the page of `lockkit`, or of one command.
///
/// # Errors
///
/// There is no such command.
pub(crate) fn page(command: &[String]) -> Result<u8, Failure> {
    let mut whole = Args::command();
    whole.build();
    let mut page = &whole;
    for name in command {
        let found = page.find_subcommand(name);
        let Some(found) = found.filter(|found| found.get_name() == name) else {
            let message = format!(
                "there is no command \"{}\"; see lockkit --help",
                command.join(" ")
            );
            return Err(Failure::new(exit::USAGE, "usage", message));
        };
        page = found;
    }
    let mut text = Vec::new();
    let examples = examples::of(command.first().map_or("", String::as_str));
    render(page, &examples, &mut text)?;
    output::listing(&String::from_utf8_lossy(&text))?;
    Ok(exit::OK)
}

fn render(page: &Command, examples: &[(&str, &str)], out: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(page.clone());
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if page.has_subcommands() {
        man.render_subcommands_section(out)?;
    }
    let mut roff = Roff::default();
    section(&mut roff, "EXIT STATUS", &exit::TABLE);
    section(&mut roff, "ENVIRONMENT", &ENVIRONMENT);
    roff.control("SH", ["SIGNALS"]);
    for paragraph in SIGNALS {
        roff.control("PP", []).text([roman(paragraph)]);
    }
    if !examples.is_empty() {
        section(&mut roff, "EXAMPLES", examples);
    }
    roff.to_writer(out)
}

fn section(roff: &mut Roff, title: &str, entries: &[(&str, &str)]) {
    roff.control("SH", [title]);
    for (term, meaning) in entries {
        roff.control("TP", [])
            .text([bold(*term)])
            .text([roman(*meaning)]);
    }
}
