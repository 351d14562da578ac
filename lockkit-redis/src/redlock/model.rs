//! The two phases, explored: every order of every message, for three nodes and three clients.
//!
//! There is no clock in it. A hold may expire, or be released, at any moment; a message may arrive
//! at any time after it was sent, in any order, or never (nothing ever has to happen). So whatever
//! holds here holds however wrong clocks and delays are. What a client counts with is the code that
//! runs on real servers ([`majority`], [`token_above`]); what a node does is written down here as the
//! scripts do it.
//!
//! Some steps of the real thing are one step here, without loss: a reply is a part of the request
//! that it answers, because a client may use it at any later step, or never; a release is an
//! expiry; a refused or unanswered request changes nothing, so it is left out.

use std::collections::VecDeque;

use foldhash::HashSet;

use super::ballot::{majority, token_above};

const NODES: usize = 3;
const CLIENTS: usize = 3;

/// A node, for one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    /// Who holds: 0 nobody, else the client and 1.
    hold: u8,
    /// The token that the hold was confirmed with, or 0.
    token: u8,
    /// The counter when the hold was taken.
    base: u8,
    /// The counter of the bucket.
    counter: u8,
}

/// A client that acquires once, and renews.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Client {
    started: bool,
    /// The highest token granted before it started.
    after: u8,
    /// What each node that gave its hold said its counter was, and 1; just 1 once that is used.
    seen: [u8; NODES],
    token: u8,
    /// A bit for each node that confirmed; none once it is granted.
    confirmed: u8,
    granted: bool,
    /// Whether a renewal began after somebody with a higher token was granted, and who confirmed it.
    late: bool,
    kept: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    nodes: [Node; NODES],
    clients: [Client; CLIENTS],
    /// How often a node may still lose its memory.
    restarts: u8,
    /// How often another name of the bucket may still raise a counter.
    others: u8,
}

/// What is left out of the rules, to see it missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    Whole,
    /// A node confirms without looking at its counter.
    ConfirmUnchecked,
    /// A node takes a hold back without looking at its counter.
    RepairUnchecked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Violation {
    /// Two grants with one token.
    SameToken,
    /// A grant with a token that is not above that of an earlier one.
    NotRising,
    /// A hold was renewed although somebody else was granted since.
    Revived,
}

struct Model {
    clients: usize,
    rules: Rules,
    /// Whether clients renew, and give holds back to nodes that lack them.
    renewals: bool,
    restarts: u8,
    others: u8,
}

impl Model {
    const fn new(clients: usize) -> Self {
        Self {
            clients,
            rules: Rules::Whole,
            renewals: false,
            restarts: 0,
            others: 0,
        }
    }

    /// Goes through all states; the first violation, or how many states there are.
    fn explore(&self) -> Result<usize, Violation> {
        let first = State {
            restarts: self.restarts,
            others: self.others,
            ..State::default()
        };
        let mut seen = HashSet::from_iter([first]);
        let mut next = VecDeque::from([first]);
        let mut states = Vec::new();
        while let Some(state) = next.pop_front() {
            self.steps(&state, &mut states)?;
            for state in states.drain(..) {
                let state = canonical(state);
                if seen.insert(state) {
                    next.push_back(state);
                }
            }
        }
        Ok(seen.len())
    }

    /// All states that one step leads to.
    fn steps(&self, state: &State, to: &mut Vec<State>) -> Result<(), Violation> {
        for node in 0..NODES {
            if state.nodes[node].hold != 0 {
                let mut state = *state;
                state.nodes[node].hold = 0;
                state.nodes[node].token = 0;
                state.nodes[node].base = 0;
                to.push(state);
            }
            if state.restarts > 0 && state.nodes[node].counter > 0 {
                let mut state = *state;
                state.restarts -= 1;
                state.nodes[node] = Node::default();
                to.push(state);
            }
            if state.others > 0 {
                let mut state = *state;
                state.others -= 1;
                state.nodes[node].counter += 1;
                to.push(state);
            }
        }
        // Clients are alike, so they start in order.
        if let Some(client) = (0..self.clients).find(|client| !state.clients[*client].started) {
            let mut state = *state;
            state.clients[client].started = true;
            state.clients[client].after = highest_granted(&state);
            to.push(state);
        }
        for client in (0..self.clients).filter(|client| state.clients[*client].started) {
            for node in 0..NODES {
                propose(state, client, node, to);
                self.confirm(state, client, node, to)?;
                if self.renewals {
                    self.repair(state, client, node, to);
                    renew(state, client, node, to)?;
                }
            }
            elect(state, client, to);
            if self.renewals {
                begin_renewal(state, client, to);
            }
        }
        Ok(())
    }

    /// Phase 2 at one node.
    fn confirm(
        &self,
        state: &State,
        client: usize,
        node: usize,
        to: &mut Vec<State>,
    ) -> Result<(), Violation> {
        let (at, by) = (state.nodes[node], state.clients[client]);
        let unchecked = self.rules == Rules::ConfirmUnchecked;
        let is_ours = at.hold == number(client) && by.seen[node] > 0;
        if by.token == 0 || !is_ours || !(unchecked || at.base < by.token) {
            return Ok(());
        }
        let mut state = *state;
        write(&mut state.nodes[node], client, by.token);
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

    /// A node takes over a hold that it lacks.
    fn repair(&self, state: &State, client: usize, node: usize, to: &mut Vec<State>) {
        let (at, by) = (state.nodes[node], state.clients[client]);
        let unchecked = self.rules == Rules::RepairUnchecked;
        let is_free = at.hold == 0 && (unchecked || at.counter <= by.token);
        let is_ours = at.hold == number(client) && at.token < by.token && at.base < by.token;
        if by.granted && (is_free || is_ours) {
            let mut state = *state;
            write(&mut state.nodes[node], client, by.token);
            to.push(state);
        }
    }
}

const fn number(client: usize) -> u8 {
    client as u8 + 1
}

fn highest_granted(state: &State) -> u8 {
    let granted = state.clients.iter().filter(|client| client.granted);
    granted.map(|client| client.token).max().unwrap_or(0)
}

fn write(node: &mut Node, client: usize, token: u8) {
    node.hold = number(client);
    node.token = token;
    node.counter = node.counter.max(token);
}

/// Phase 1 at one node.
fn propose(state: &State, client: usize, node: usize, to: &mut Vec<State>) {
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
fn elect(state: &State, client: usize, to: &mut Vec<State>) {
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

/// A renewal after somebody else was granted; one before that is no news.
fn begin_renewal(state: &State, client: usize, to: &mut Vec<State>) {
    let by = state.clients[client];
    if by.granted && !by.late && highest_granted(state) > by.token {
        let mut state = *state;
        state.clients[client].late = true;
        to.push(state);
    }
}

/// A node confirms such a renewal.
fn renew(state: &State, client: usize, node: usize, to: &mut Vec<State>) -> Result<(), Violation> {
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

/// Nodes are alike: of all states that differ in their order only, one stands for all.
fn canonical(state: State) -> State {
    let key = |node: usize| {
        let at = state.nodes[node];
        let of = |client: &Client| {
            let bits = client.confirmed >> node & 1 | (client.kept >> node & 1) << 1;
            u64::from(client.seen[node]) << 2 | u64::from(bits)
        };
        let clients = state
            .clients
            .iter()
            .fold(0, |all, client| all << 8 | of(client));
        let at = [at.hold, at.token, at.base, at.counter];
        at.iter()
            .fold(clients, |all, part| all << 8 | u64::from(*part))
    };
    let mut order = [0, 1, 2];
    order.sort_unstable_by_key(|node| key(*node));
    let mut sorted = state;
    sorted.nodes = order.map(|node| state.nodes[node]);
    for (client, from) in sorted.clients.iter_mut().zip(&state.clients) {
        client.seen = order.map(|node| from.seen[node]);
        let bits = |bits: u8| {
            let moved = order.iter().enumerate();
            moved.fold(0, |all, (to, node)| all | (bits >> node & 1) << to)
        };
        (client.confirmed, client.kept) = (bits(from.confirmed), bits(from.kept));
    }
    sorted
}

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
