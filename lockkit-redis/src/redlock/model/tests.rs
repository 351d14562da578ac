//! What holds in every state, and that the model would notice if it did not.

use super::explore::Model;
use super::rules::{Rules, Violation};

#[test]
fn tokens_are_unique_and_rise_for_three_nodes_and_three_clients() {
    let states = Model::new(3).explore().expect("no violation");
    assert!(
        states > 10_000,
        "only {states} states: is everything tried?"
    );
}

#[test]
fn a_renewal_never_brings_a_hold_back() {
    let model = Model {
        renewals: true,
        ..Model::new(2)
    };
    let states = model.explore().expect("no violation");
    assert!(states > 1_000, "only {states} states: is everything tried?");
}

#[test]
fn other_names_of_the_bucket_change_nothing() {
    let model = Model {
        renewals: true,
        others: 1,
        ..Model::new(2)
    };
    model.explore().expect("no violation");
}

#[test]
fn the_model_finds_what_goes_wrong_without_the_check_of_the_counter() {
    let rules = Rules::ConfirmUnchecked;
    let found = Model {
        rules,
        ..Model::new(3)
    }
    .explore()
    .expect_err("a violation");
    assert!(
        matches!(found, Violation::SameToken | Violation::NotRising),
        "{found:?}"
    );
}

#[test]
fn the_model_finds_what_goes_wrong_if_counters_do_not_survive_a_restart() {
    let found = Model {
        restarts: 1,
        ..Model::new(3)
    }
    .explore()
    .expect_err("a violation");
    assert!(
        matches!(found, Violation::SameToken | Violation::NotRising),
        "{found:?}"
    );
}

#[test]
fn the_model_finds_what_goes_wrong_if_a_hold_is_given_back_unchecked() {
    let rules = Rules::RepairUnchecked;
    let model = Model {
        rules,
        renewals: true,
        ..Model::new(2)
    };
    assert_eq!(
        model.explore().expect_err("a violation"),
        Violation::Revived
    );
}
