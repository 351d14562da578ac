//! Are enough of the servers well, and do they remember?

use std::time::Duration;

use futures_util::future::join_all;
use lockkit_core::{Error, ErrorKind, Result};

use super::backend::Shared;
use super::connect::is_durable;
use super::peer::{Memory, Peer, Standing};
use crate::probe::eviction;
use crate::transport::{Lane, Server};

type Facts = Vec<(&'static str, String)>;

impl Shared {
    /// See [`Backend::probe`](lockkit_core::Backend::probe).
    pub(crate) async fn probe(&self) -> Result<Facts> {
        let peers = &self.admission.peers;
        let answers = join_all(peers.iter().map(|peer| self.about(peer))).await;
        let answers = peers.iter().zip(answers);
        let (all, majority) = (peers.len(), self.council.majority());
        let (mut votes, mut facts, mut absent) = (0, Vec::new(), Vec::new());
        for (peer, answer) in answers {
            facts.push(("server", peer.address.clone()));
            match answer {
                Ok((standing, about)) => {
                    facts.extend(about);
                    if standing.memory == Memory::Whole {
                        votes += 1;
                    } else {
                        let error = Error::new(ErrorKind::Unavailable, vote(&standing));
                        absent.push(peer.named(&error));
                    }
                }
                Err(error) => {
                    facts.push(("state", down(&error)));
                    absent.push(error);
                }
            }
        }
        if votes < majority {
            return Err(self.council.absent(absent));
        }
        let spare = match votes - majority {
            0 => "NONE OF THEM MAY FAIL".to_owned(),
            spare => format!("{spare} of them may fail"),
        };
        facts.insert(0, ("votes", format!("{votes} of {all} servers: {spare}")));
        Ok(facts)
    }

    /// What an operator wants to know of a server, each with what it means for locks.
    async fn about(&self, peer: &Peer) -> Result<(Standing, Facts)> {
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
        let facts = vec![
            ("version", server.version.clone()),
            ("vote", vote(&standing)),
            ("persistence", persistence(&server, standing.lease)),
            ("eviction", eviction(&server)),
        ];
        Ok((standing, facts))
    }
}

/// Why it does not answer, under its address.
fn down(error: &Error) -> String {
    let last = error.context().find(|(key, _)| *key == "last");
    let source = std::error::Error::source(error).map(ToString::to_string);
    match source.or_else(|| last.map(|(_, why)| why.to_owned())) {
        Some(why) => format!("DOWN: {}: {why}", error.message()),
        None => format!("DOWN: {}", error.message()),
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
