//! The steps by which a client comes to hold.

use super::rules::{Rules, Violation};
use super::state::{NODES, State, number};
use crate::redlock::ballot::{majority, token_above};

/// Phase 1 at one node.
pub(super) fn propose(state: &State, client: usize, node: usize, to: &mut Vec<State>) {
    if state.nodes[node].hold != 0 || state.clients[client].seen[node] != 0 {
        return;
    }
    let mut state = *state;
    let at = &mut state.nodes[node];
    at.hold = number(client);
    at.token = 0;
    at.base = at.counter;
    let by = &mut state.clients[client];
    by.seen[node] = if by.token == 0 { at.base + 1 } else { 1 };
    to.push(state);
}

/// A client chooses its token, from any majority that gave its hold, and whatever else it has seen.
pub(super) fn elect(state: &State, client: usize, to: &mut Vec<State>) {
    let by = state.clients[client];
    if by.token != 0 {
        return;
    }
    for chosen in 0_u8..1 << NODES {
        let is_chosen = |node: &usize| chosen & 1 << node != 0;
        let given = (0..NODES).filter(is_chosen).all(|node| by.seen[node] > 0);
        if !given || (chosen.count_ones() as usize) < majority(NODES) {
            continue;
        }
        let counters = (0..NODES).filter(is_chosen).map(|node| by.seen[node] - 1);
        let highest = counters.max().unwrap_or(0);
        let others = (0..NODES).filter(|node| !is_chosen(node));
        let others = others.map(|node| state.nodes[node].counter.max(highest));
        for highest in std::iter::once(highest).chain(others) {
            let mut state = *state;
            let by = &mut state.clients[client];
            by.token = u8::try_from(token_above(u64::from(highest), 0)).expect("tokens are few");
            by.seen = by.seen.map(|seen| seen.min(1));
            to.push(state);
        }
    }
}

/// Phase 2 at one node.
pub(super) fn confirm(
    rules: Rules,
    state: &State,
    client: usize,
    node: usize,
    to: &mut Vec<State>,
) -> Result<(), Violation> {
    let (at, by) = (state.nodes[node], state.clients[client]);
    let unchecked = rules == Rules::ConfirmUnchecked;
    let is_ours = at.hold == number(client) && by.seen[node] > 0;
    if by.token == 0 || !is_ours || !(unchecked || at.base < by.token) {
        return Ok(());
    }
    let mut state = *state;
    state.nodes[node].write(client, by.token);
    let by = &mut state.clients[client];
    if !by.granted {
        by.confirmed |= 1 << node;
        if by.confirmed.count_ones() as usize >= majority(NODES) {
            grant(&mut state, client)?;
        }
    }
    to.push(state);
    Ok(())
}

/// A majority has confirmed.
fn grant(state: &mut State, client: usize) -> Result<(), Violation> {
    let token = state.clients[client].token;
    if state
        .clients
        .iter()
        .any(|other| other.granted && other.token == token)
    {
        return Err(Violation::SameToken);
    }
    let by = &mut state.clients[client];
    if token <= by.after {
        return Err(Violation::NotRising);
    }
    by.granted = true;
    (by.confirmed, by.after) = (0, 0);
    Ok(())
}
