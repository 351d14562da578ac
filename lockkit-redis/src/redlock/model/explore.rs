//! All states, one step after the other.

use std::collections::VecDeque;

use foldhash::HashSet;

use super::renewing::{begin_renewal, renew, repair};
use super::rules::{Rules, Violation};
use super::state::{NODES, Node, State, canonical};
use super::taking::{confirm, elect, propose};

/// What is explored.
pub(super) struct Model {
    pub(super) clients: usize,
    pub(super) rules: Rules,
    /// Whether clients renew, and give holds back to nodes that lack them.
    pub(super) renewals: bool,
    /// How many nodes lose their memory, counters included.
    pub(super) restarts: u8,
    /// How often another name of the bucket raises a counter.
    pub(super) others: u8,
}

impl Model {
    pub(super) const fn new(clients: usize) -> Self {
        Self {
            clients,
            rules: Rules::Whole,
            renewals: false,
            restarts: 0,
            others: 0,
        }
    }

    /// Goes through all states; the first violation, or how many states there are.
    pub(super) fn explore(&self) -> Result<usize, Violation> {
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
                state.nodes[node].free();
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
            state.clients[client].after = state.highest_granted();
            to.push(state);
        }
        for client in (0..self.clients).filter(|client| state.clients[*client].started) {
            for node in 0..NODES {
                propose(state, client, node, to);
                confirm(self.rules, state, client, node, to)?;
                if self.renewals {
                    repair(self.rules, state, client, node, to);
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
}
