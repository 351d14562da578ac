//! `lockkit man`: the manual, made from the same description as the command line.

use std::io;

use clap::CommandFactory as _;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::Args;
use crate::exit::{self, Failure};
use crate::output;

const ENVIRONMENT: [(&str, &str); 6] = [
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
        "Set for CMD: a number that rises with every holder of the lock. Let what CMD writes to refuse lower ones.",
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

const SIGNALS: [&str; 4] = [
    "While lockkit waits for the lock, INT, TERM, HUP, QUIT, USR1 and USR2 withdraw it: CMD is never started, and the exit code is 128+n.",
    "While CMD runs, these and WINCH, TSTP and CONT are passed on to its process group (to CMD alone with --foreground). TSTP stops CMD; the lock stays held. A second INT or TERM is followed by KILL after --kill-after. Signals that were ignored when lockkit started stay ignored.",
    "When the lock is lost, CMD and its process group get TERM at once and KILL after --kill-after, and lockkit exits with 79 whatever CMD returns. Choose --ttl longer than CMD needs to stop.",
    "When lockkit itself is killed, CMD is killed by the kernel (on Linux; not if CMD changes its user). Processes that CMD has started are not; on the SQLite backend the lock stays theirs until they end or the lease runs out, whichever comes first.",
];

const EXAMPLES: [(&str, &str); 4] = [
    (
        "lockkit run nightly-report -- ./report.sh",
        "Run a script, one at a time on this machine.",
    ),
    (
        "lockkit run -n deploy -- make deploy || echo busy",
        "Do not wait.",
    ),
    (
        "id=$(lockkit acquire -t 10m migration) && ./migrate; lockkit release \"$id\"",
        "Hold a lock over several commands of a script.",
    ),
    ("lockkit ls --watch", "Watch who holds and who waits."),
];

/// Prints the page of `lockkit`, or of one command.
///
/// # Errors
///
/// There is no such command.
pub(crate) fn page(command: Option<&str>) -> Result<u8, Failure> {
    let mut whole = Args::command();
    whole.build();
    let page = match command {
        None => whole,
        Some(name) => {
            let command = whole
                .find_subcommand(name)
                .filter(|command| command.get_name() == name);
            let Some(command) = command else {
                let message = format!("there is no command \"{name}\"; see lockkit --help");
                return Err(Failure::new(exit::USAGE, "usage", message));
            };
            command.clone()
        }
    };
    let mut text = Vec::new();
    render(&Man::new(page), &mut text)?;
    output::listing(&String::from_utf8_lossy(&text))?;
    Ok(exit::OK)
}

fn render(man: &Man, out: &mut Vec<u8>) -> io::Result<()> {
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    man.render_subcommands_section(out)?;
    let mut roff = Roff::default();
    section(&mut roff, "EXIT STATUS", &exit::TABLE);
    section(&mut roff, "ENVIRONMENT", &ENVIRONMENT);
    roff.control("SH", ["SIGNALS"]);
    for paragraph in SIGNALS {
        roff.control("PP", []).text([roman(paragraph)]);
    }
    section(&mut roff, "EXAMPLES", &EXAMPLES);
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
