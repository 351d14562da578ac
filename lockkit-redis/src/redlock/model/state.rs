//! What there is at one moment: nodes, clients, and what may still befall them.

pub(super) const NODES: usize = 3;
pub(super) const CLIENTS: usize = 3;

/// A node, for one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Node {
    /// Who holds: 0 nobody, else the client and 1.
    pub(super) hold: u8,
    /// The token that the hold was confirmed with, or 0.
    pub(super) token: u8,
    /// The counter when the hold was taken.
    pub(super) base: u8,
    /// The counter of the bucket.
    pub(super) counter: u8,
}

impl Node {
    /// Writes down that it has confirmed.
    pub(super) fn write(&mut self, client: usize, token: u8) {
        self.hold = number(client);
        self.token = token;
        self.counter = self.counter.max(token);
    }

    /// A lease has run out, or the hold was released.
    pub(super) const fn free(&mut self) {
        (self.hold, self.token, self.base) = (0, 0, 0);
    }
}

/// A client that acquires once, and renews.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Client {
    pub(super) started: bool,
    /// The highest token granted before it started.
    pub(super) after: u8,
    /// What each node that gave its hold said its counter was, and 1; just 1 once that is used.
    pub(super) seen: [u8; NODES],
    pub(super) token: u8,
    /// A bit for each node that confirmed; none once it is granted.
    pub(super) confirmed: u8,
    pub(super) granted: bool,
    /// Whether a renewal began after somebody with a higher token was granted, and who confirmed it.
    pub(super) late: bool,
    pub(super) kept: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) nodes: [Node; NODES],
    pub(super) clients: [Client; CLIENTS],
    /// How often a node may still lose its memory.
    pub(super) restarts: u8,
    /// How often another name of the bucket may still raise a counter.
    pub(super) others: u8,
}

impl State {
    /// The highest token that was granted so far.
    pub(super) fn highest_granted(&self) -> u8 {
        let granted = self.clients.iter().filter(|client| client.granted);
        granted.map(|client| client.token).max().unwrap_or(0)
    }
}

/// A client, as a node writes it down.
pub(super) const fn number(client: usize) -> u8 {
    client as u8 + 1
}

/// Nodes are alike: of all states that differ in their order only, one stands for all.
pub(super) fn canonical(state: State) -> State {
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
