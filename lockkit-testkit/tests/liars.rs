//! The suite tested: each liar must fail the case that is meant for it, which the honest backend
//! must pass.

use std::collections::BTreeSet;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use lockkit_testkit::liars::{Liar, liars};
use lockkit_testkit::{Case, Failure, InMemory, Outcome, Time, cases, run};

fn case(title: &str) -> Outcome<Case> {
    let case = cases().into_iter().find(|case| case.title() == title);
    case.ok_or_else(|| Failure::new(format!("there is no case {title}")))
}

fn is_caught(liar: Liar) -> Outcome {
    match run(case(liar.caught_by)?, liar.harness()) {
        Ok(()) => Err(Failure::new(format!(
            "{} has not noticed it",
            liar.caught_by
        ))),
        Err(failure) => {
            println!("{}: {failure}", liar.name);
            Ok(())
        }
    }
}

fn honesty_passes(title: &str) -> Outcome {
    run(case(title)?, InMemory::new(Time::Virtual))
}

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for liar in liars() {
        let name = format!("caught: {}", liar.name);
        trials.push(Trial::test(name, move || {
            is_caught(liar).map_err(Into::into)
        }));
    }
    let titles: BTreeSet<&str> = liars().iter().map(|liar| liar.caught_by).collect();
    for title in titles {
        let name = format!("honest: {title}");
        trials.push(Trial::test(name, move || {
            honesty_passes(title).map_err(Into::into)
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
