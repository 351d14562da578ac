//! Messages: each bucket has a channel in its own slot.

use std::sync::Arc;

use lockkit_core::{Error, ErrorKind, Result};
use tokio::time::{Instant, sleep};

use super::look::PAUSE;
use super::nodes::Cluster;
use crate::descriptor::DRIVER;
use crate::error::translated;
use crate::key::Bucket;
use crate::transport::{Failure, Live, Request};

impl Cluster {
    /// Hears the channel of a bucket from now on.
    pub(crate) async fn listen(&self, bucket: Bucket) -> Result<()> {
        let channel = self.prefix.inbox(Some(bucket), &self.client);
        let end = Instant::now() + self.settings.timeout;
        loop {
            let (version, member) = self.member_of(bucket).await?;
            if member.channels.has(&channel) {
                return Ok(());
            }
            let live = match member.ear.live().await {
                Ok(live) => live,
                Err(error) => {
                    self.look_soon(Some(version)).await;
                    return Err(error);
                }
            };
            let gaps = member.channels.gaps();
            match subscribe(&live, &channel).await {
                Ok(true) if member.channels.add(&channel, gaps) => return Ok(()),
                Ok(_) if Instant::now() < end => {
                    sleep(PAUSE).await;
                    self.look(version, None).await?;
                }
                Ok(_) => {
                    let message = "the slot is moving to another node at the moment";
                    return Err(Error::new(ErrorKind::Unavailable, message).on(DRIVER));
                }
                Err(Failure::Refused { code, detail })
                    if code == "MOVED" && Instant::now() < end =>
                {
                    let owner = member.sends_to(&detail);
                    self.look(version, owner.as_ref()).await?;
                }
                Err(failure) if failure.is("NOPERM") => {
                    self.ears.deaf(&failure);
                    return Ok(());
                }
                Err(failure) => return Err(translated(failure)),
            }
        }
    }

    /// Sees to it that the channel of a bucket is heard, sooner or later: that of a hold, whose slot
    /// may have moved since it was taken.
    pub(crate) fn keep_listening(self: &Arc<Self>, bucket: Bucket) {
        let channel = self.prefix.inbox(Some(bucket), &self.client);
        if self.map().heard(bucket, &channel) {
            return;
        }
        let cluster = Arc::clone(self);
        tokio::spawn(async move {
            // The next renewal tries again.
            let _ = cluster.listen(bucket).await;
        });
    }
}

/// Hears a channel; `false` if the node is no master any more. It would say yes all the same, and
/// pass on what the master says to those whom the master cannot reach: grants that were given to
/// somebody else instead.
async fn subscribe(live: &Live, channel: &str) -> Result<bool, Failure> {
    live.subscribe(channel, true).await?;
    let role = match live.send(&Request::new("ROLE")).await {
        Err(failure) if failure.is("NOPERM") => return Ok(true),
        role => role?,
    };
    let word = role.as_array().and_then(|role| role.first()?.as_text());
    Ok(word == Some("master"))
}
