//! Counting votes: pure, so that the same rules run on real servers and in the model.

/// How many of `nodes` are a majority: any two majorities share a node.
pub(crate) const fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// The token of a round: above every counter that it has seen. If an earlier round of the same claim was
/// confirmed somewhere with a token that is still above all of them, that one, so that a claim
/// which asks again is given what it may have been given before.
pub(crate) const fn token_above(highest_counter: u64, own_token: u64) -> u64 {
    if own_token > highest_counter {
        own_token
    } else {
        highest_counter + 1
    }
}

/// What a node said in phase 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proposed {
    /// The hold is ours there. Its counter, and the token that it was confirmed with or 0.
    Ours { counter: u64, token: u64 },
    /// It is somebody else's.
    Theirs { counter: u64 },
}

/// Where a node stands in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// No word yet.
    Asked,
    /// It gave its hold and has not been heard of in phase 2 yet.
    Ours,
    Theirs,
    Confirmed,
    Refused,
    /// It cannot be reached, or has no vote.
    Absent,
}

/// What a round has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// Votes are missing.
    Open,
    /// A majority gave its hold: phase 2 may begin, with this token.
    Elected(u64),
    /// A majority has confirmed this token.
    Granted(u64),
    /// No majority can come about any more: somebody else has too many nodes.
    Lost,
    /// No majority can come about any more: too few nodes can vote.
    Absent,
}

/// One round of one claim, over all nodes.
#[derive(Debug)]
pub(crate) struct Ballot {
    stands: Vec<Stand>,
    highest_counter: u64,
    own_token: u64,
    token: Option<u64>,
}

impl Ballot {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            stands: vec![Stand::Asked; nodes],
            highest_counter: 0,
            own_token: 0,
            token: None,
        }
    }

    /// A node answered in phase 1; `None` if it cannot vote.
    pub(crate) fn proposed(&mut self, node: usize, answer: Option<Proposed>) -> Course {
        self.stands[node] = match answer {
            Some(Proposed::Ours { counter, token }) => {
                self.highest_counter = self.highest_counter.max(counter);
                self.own_token = self.own_token.max(token);
                Stand::Ours
            }
            Some(Proposed::Theirs { counter }) => {
                self.highest_counter = self.highest_counter.max(counter);
                Stand::Theirs
            }
            None => Stand::Absent,
        };
        let ours = self.count(Stand::Ours);
        if self.token.is_none() && ours >= majority(self.stands.len()) {
            let token = token_above(self.highest_counter, self.own_token);
            self.token = Some(token);
            return Course::Elected(token);
        }
        self.course()
    }

    /// A node answered in phase 2; `None` if it cannot vote any more.
    pub(crate) fn confirmed(&mut self, node: usize, answer: Option<bool>) -> Course {
        self.stands[node] = match answer {
            Some(true) => Stand::Confirmed,
            Some(false) => Stand::Refused,
            None => Stand::Absent,
        };
        self.course()
    }

    fn course(&self) -> Course {
        let majority = majority(self.stands.len());
        if let Some(token) = self.token
            && self.count(Stand::Confirmed) >= majority
        {
            return Course::Granted(token);
        }
        let possible =
            self.count(Stand::Asked) + self.count(Stand::Ours) + self.count(Stand::Confirmed);
        if possible >= majority {
            return Course::Open;
        }
        // What is missing may be missing only because nodes are: then nobody is in the way.
        if self.stands.len() - self.count(Stand::Absent) < majority {
            Course::Absent
        } else {
            Course::Lost
        }
    }

    fn count(&self, stand: Stand) -> usize {
        self.stands.iter().filter(|found| **found == stand).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Option<Proposed> = Some(Proposed::Ours {
        counter: 7,
        token: 0,
    });
    const TAKEN: Option<Proposed> = Some(Proposed::Theirs { counter: 9 });

    #[test]
    fn the_first_majority_decides_each_phase() {
        let mut ballot = Ballot::new(5);
        assert_eq!(ballot.proposed(0, FREE), Course::Open);
        assert_eq!(ballot.proposed(1, TAKEN), Course::Open);
        assert_eq!(ballot.proposed(2, FREE), Course::Open);
        assert_eq!(
            ballot.proposed(3, FREE),
            Course::Elected(10),
            "above all that was seen"
        );
        assert_eq!(ballot.confirmed(0, Some(true)), Course::Open);
        assert_eq!(ballot.proposed(4, FREE), Course::Open, "a straggler");
        assert_eq!(ballot.confirmed(2, Some(false)), Course::Open);
        assert_eq!(ballot.confirmed(4, Some(true)), Course::Open);
        assert_eq!(ballot.confirmed(3, Some(true)), Course::Granted(10));
    }

    #[test]
    fn a_lost_round_is_told_from_absent_nodes() {
        let mut ballot = Ballot::new(3);
        assert_eq!(ballot.proposed(0, TAKEN), Course::Open);
        assert_eq!(ballot.proposed(1, TAKEN), Course::Lost);
        let mut ballot = Ballot::new(3);
        assert_eq!(ballot.proposed(0, None), Course::Open);
        assert_eq!(ballot.proposed(1, None), Course::Absent);
    }

    #[test]
    fn who_asks_again_is_given_the_same_token_while_it_is_good() {
        assert_eq!(token_above(7, 0), 8);
        assert_eq!(token_above(7, 9), 9);
        assert_eq!(token_above(9, 9), 10);
    }
}
