//! Are enough of the servers well, and do they remember?

use std::time::Duration;

use futures_util::future::join_all;
use lockkit_core::Result;

use super::backend::Shared;
use super::connect::is_durable;
use super::peer::{Memory, Peer, Standing};
use crate::probe::eviction;
use crate::transport::{Lane, Server};

impl Shared {
    /// See [`Backend::probe`](lockkit_core::Backend::probe).
    pub(crate) async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        let peers = &self.admission.peers;
        let answers = join_all(peers.iter().map(|peer| self.about(peer))).await;
        let up = answers.iter().filter(|answer| answer.is_ok()).count();
        let (all, majority) = (peers.len(), self.council.majority());
        if up < majority {
            let errors = answers.into_iter().filter_map(Result::err);
            return Err(self.council.absent(errors.collect()));
        }
        let spare = match up - majority {
            0 => "NONE MORE MAY FAIL".to_owned(),
            spare => format!("{spare} more may fail"),
        };
        let mut facts = vec![("servers", format!("{up} of {all} answer: {spare}"))];
        for (peer, answer) in peers.iter().zip(answers) {
            facts.push(("server", peer.address.clone()));
            match answer {
                Ok(about) => facts.extend(about),
                Err(error) => facts.push(("state", format!("DOWN: {error}"))),
            }
        }
        Ok(facts)
    }

    /// What an operator wants to know of a server, each with what it means for locks.
    async fn about(&self, peer: &Peer) -> Result<Vec<(&'static str, String)>> {
        let named = |error| peer.named(&error);
        let live = match (peer.node.if_up(), peer.node.refusal()) {
            (Some(live), _) => live,
            // It is tried again all the time; what counts is how it is now.
            (None, Some(why)) => return Err(peer.named(&why)),
            (None, None) => peer.node.live(Lane::Work).await.map_err(named)?,
        };
        let server = live.ask_again().await.map_err(named)?;
        let standing = peer.standing(self.admission.max_lease);
        let standing = standing.await.map_err(named)?;
        Ok(vec![
            ("version", server.version.clone()),
            ("vote", vote(&standing)),
            ("persistence", persistence(&server, standing.lease)),
            ("eviction", eviction(&server)),
        ])
    }
}

/// Whether it counts.
fn vote(standing: &Standing) -> String {
    let left = standing.lease.saturating_sub(standing.waited);
    match standing.memory {
        Memory::Whole => "yes".to_owned(),
        Memory::Older | Memory::None if left.is_zero() => {
            "not yet: it may have forgotten, and is told what the others know with the next request"
                .to_owned()
        }
        Memory::Older | Memory::None => format!(
            "NOT FOR ANOTHER {}: it may have forgotten, and leases that count on it may last so long",
            seconds(left)
        ),
    }
}

/// What a restart costs; `lease` is the longest that any client takes.
fn persistence(server: &Server, lease: Duration) -> String {
    if is_durable(server) {
        return "every write is on disk before it counts: a restart costs no vote".to_owned();
    }
    let log = match (server.info("aof_enabled"), &server.appendfsync) {
        (Some("1"), Some(when)) => format!("log written {when}"),
        (Some("1"), None) => "log of changes".to_owned(),
        _ => "no log".to_owned(),
    };
    let lease = seconds(lease);
    format!("{log}: after a restart it has no vote for {lease}, the longest lease (`max_lease`)")
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64().ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_forgot_says_how_long_it_does_not_count() {
        let standing = |memory, waited| Standing {
            memory,
            waited: Duration::from_millis(waited),
            lease: Duration::from_secs(300),
            clock: 0,
        };
        assert_eq!(vote(&standing(Memory::Whole, 0)), "yes");
        let forgetful = vote(&standing(Memory::None, 9_500));
        assert!(
            forgetful.starts_with("NOT FOR ANOTHER 291 s: "),
            "{forgetful}"
        );
        assert!(vote(&standing(Memory::Older, 300_000)).starts_with("not yet: "));
    }
}
