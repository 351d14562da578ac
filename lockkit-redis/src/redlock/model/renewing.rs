//! The steps by which a client goes on to hold.

use super::rules::{Rules, Violation};
use super::state::{NODES, State, number};
use crate::redlock::ballot::majority;

/// A renewal after somebody else was granted; one before that is no news.
pub(super) fn begin_renewal(state: &State, client: usize, to: &mut Vec<State>) {
    let by = state.clients[client];
    if by.granted && !by.late && state.highest_granted() > by.token {
        let mut state = *state;
        state.clients[client].late = true;
        to.push(state);
    }
}

/// A node confirms such a renewal.
pub(super) fn renew(
    state: &State,
    client: usize,
    node: usize,
    to: &mut Vec<State>,
) -> Result<(), Violation> {
    let (at, by) = (state.nodes[node], state.clients[client]);
    if !by.late || at.hold != number(client) || at.token != by.token {
        return Ok(());
    }
    let mut state = *state;
    state.clients[client].kept |= 1 << node;
    if state.clients[client].kept.count_ones() as usize >= majority(NODES) {
        return Err(Violation::Revived);
    }
    to.push(state);
    Ok(())
}

/// A node takes over a hold that it lacks.
pub(super) fn repair(rules: Rules, state: &State, client: usize, node: usize, to: &mut Vec<State>) {
    let (at, by) = (state.nodes[node], state.clients[client]);
    let unchecked = rules == Rules::RepairUnchecked;
    let is_free = at.hold == 0 && (unchecked || at.counter <= by.token);
    let is_ours = at.hold == number(client) && at.token < by.token && at.base < by.token;
    if by.granted && (is_free || is_ours) {
        let mut state = *state;
        state.nodes[node].write(client, by.token);
        to.push(state);
    }
}
