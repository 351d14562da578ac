//! Requests, sent to wherever their keys are.

use lockkit_core::Result;
use tokio::time::{Instant, sleep};

use super::look::PAUSE;
use super::nodes::Cluster;
use crate::transport::{Errand, Failure, Lane, Reply};

impl Cluster {
    /// Runs an errand where its keys are, wherever they move meanwhile.
    pub(crate) async fn run(
        &self,
        lane: Lane,
        errand: &Errand<'_>,
    ) -> Result<Result<Reply, Failure>> {
        let end = Instant::now() + self.settings.timeout;
        let mut asking = None;
        loop {
            let (version, member) = match asking.take() {
                Some(member) => (None, member),
                None => {
                    let (version, member) = self.member_of(errand.bucket()).await?;
                    (Some(version), member)
                }
            };
            let outcome = member.node.run(lane, errand, version.is_none()).await;
            let failure = match outcome {
                Ok(Ok(reply)) => return Ok(Ok(reply)),
                Ok(Err(failure)) => failure,
                Err(error) => {
                    // It may be gone for good, and another one in its place.
                    self.look_soon(version).await;
                    return Err(error);
                }
            };
            match &failure {
                Failure::Refused { code, detail } if Instant::now() < end => match code.as_str() {
                    "ASK" => match member.sends_to(detail) {
                        Some(endpoint) => asking = Some(self.member_at(endpoint).await?),
                        None => return Ok(Err(failure)),
                    },
                    "MOVED" => {
                        let owner = member.sends_to(detail);
                        self.look(version.unwrap_or(0), owner.as_ref()).await?;
                    }
                    "TRYAGAIN" => sleep(PAUSE).await,
                    "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING" => {
                        sleep(PAUSE).await;
                        self.look_soon(version).await;
                    }
                    _ => return Ok(Err(failure)),
                },
                Failure::Broken(_) | Failure::Silent(_) => {
                    self.look_soon(version).await;
                    return Ok(Err(failure));
                }
                Failure::Refused { .. } => return Ok(Err(failure)),
            }
        }
    }
}
