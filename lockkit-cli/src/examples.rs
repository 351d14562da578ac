//! Examples of each command, for `--help` and the manual.

use std::fmt::Write as _;

/// The command that an example is for, what to type, and what that does.
type Example = (&'static str, &'static str, &'static str);

const EXAMPLES: [Example; 20] = [
    (
        "run",
        "lockkit run nightly-report -- ./report.sh",
        "Run a script, one at a time on this machine.",
    ),
    (
        "run",
        "lockkit run -n deploy -- make deploy || echo busy",
        "Do not wait.",
    ),
    (
        "run",
        "lockkit run catalogue --shared -- ./export.sh",
        "Read together with others, while nobody runs with --exclusive.",
    ),
    (
        "run",
        "lockkit run catalogue --exclusive -- ./import.sh",
        "Write alone: wait for the readers, and let no new one pass.",
    ),
    (
        "run",
        "lockkit run builds --of 5 -- make",
        "Five at a time, on all machines together; --permits 2 for one that counts twice.",
    ),
    (
        "run",
        "lockkit run databases --any-of 8 -- sh -c 'psql test_$LOCKKIT_SEGMENT < tests.sql'",
        "Take one of eight databases, whichever is free.",
    ),
    (
        "run",
        "lockkit run accounts --segment-of alice --of 64 -- ./charge.sh alice",
        "One at a time for each account, with 64 locks for all of them.",
    ),
    (
        "run",
        "lockkit run index --on-request term -- ./reindex.sh",
        "End the program when somebody asks for the lock.",
    ),
    (
        "acquire",
        "id=$(lockkit acquire -t 10m migration) && ./migrate; lockkit release \"$id\"",
        "Hold a lock over several commands of a script.",
    ),
    (
        "acquire",
        "lockkit acquire databases --any-of 8 --format json",
        "The id, and beside it which segment was taken.",
    ),
    (
        "latch",
        "lockkit latch set shards-ready 3",
        "Three are to come.",
    ),
    (
        "latch",
        "lockkit latch down shards-ready --as shard-1",
        "One has come. A repeated call with the same id does not count again.",
    ),
    (
        "latch",
        "lockkit latch wait shards-ready --wait 10m && ./start.sh",
        "Go on when all have come; give up after ten minutes with exit code 75.",
    ),
    ("ls", "lockkit ls --watch", "Watch who holds and who waits."),
    (
        "ls",
        "lockkit ls orders/ --format json | jq '.[].holders[].label.host'",
        "The hosts that hold the locks whose names begin with orders/.",
    ),
    (
        "request-release",
        "lockkit request-release index --wait 1m && lockkit run index -- ./repair.sh",
        "Ask for a lock and wait until it was let go.",
    ),
    ("break", "lockkit break deploy", "Take a lock away."),
    (
        "break",
        "lockkit break builds --id 3fa2b1c0",
        "Take the permits of one holder away, the one that ls shows with this id.",
    ),
    (
        "resize",
        "lockkit resize builds --permits 10",
        "Ten at a time from now on; change --of in the scripts too.",
    ),
    (
        "resize",
        "lockkit resize databases --segments 16",
        "Sixteen databases from now on, if none is in use.",
    ),
];

/// What to type and what it does, for one command; for the empty word, the first of each.
pub(crate) fn of(command: &str) -> Vec<(&'static str, &'static str)> {
    let mut last = "";
    let examples = EXAMPLES.iter().filter(|&&(of, ..)| {
        let first = std::mem::replace(&mut last, of) != of;
        of == command || (command.is_empty() && first)
    });
    examples.map(|&(_, typed, does)| (typed, does)).collect()
}

/// The examples as a section of `--help`.
pub(crate) fn help(command: &str) -> String {
    let mut text = String::from("Examples:");
    for (typed, does) in of(command) {
        let _ = write!(text, "\n  {typed}\n      {does}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::Parser as _;

    #[test]
    fn every_example_is_a_command_line_that_works() {
        for (command, typed, _) in EXAMPLES {
            let typed = typed.split_once("lockkit ").unwrap().1;
            let mine = typed.split([')', '|', '<']).next().unwrap();
            let mine = mine.split(" && ").next().unwrap();
            let args = std::iter::once("lockkit").chain(mine.split_whitespace());
            Args::try_parse_from(args).unwrap_or_else(|error| panic!("{mine}: {error}"));
            assert!(mine.starts_with(command), "{mine}");
        }
    }
}
