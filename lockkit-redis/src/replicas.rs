//! Grants that count only once replicas have them: the option `replicas`.
//!
//! `WAIT` narrows the window in which a failover can lose a grant; it does not close it, because a
//! replica that has less may be promoted all the same.

use std::sync::Arc;

use lockkit_core::{Error, ErrorKind, HoldId, Primitive, Renewal, Result};

use crate::descriptor::DRIVER;
use crate::error::{odd, translated};
use crate::shared::Shared;
use crate::transport::{Lane, Request};

impl Shared {
    /// Waits until as many replicas as were asked for have the grants of these holds. After an error
    /// the holds are to be released.
    pub(crate) async fn replicate(&self, ids: &[HoldId]) -> Result<()> {
        if self.options.replicas == 0 {
            return Ok(());
        }
        for id in ids {
            // Who passes a latch holds nothing.
            if id.resource().primitive() != Primitive::Latch {
                self.replicate_one(id).await?;
            }
        }
        Ok(())
    }

    /// `WAIT` is about what was written on the same connection. So the hold is renewed on the
    /// connection that waits: whoever has that write has the grant, which was before it.
    async fn replicate_one(&self, id: &HoldId) -> Result<()> {
        let bucket = self.prefix.keys(id.resource()).bucket;
        let live = self.route.live(Lane::Replicas, bucket).await?;
        let renewals = self.renew(Lane::Replicas, std::slice::from_ref(id)).await;
        match renewals.into_iter().next() {
            Some(Renewal::Renewed { .. }) => {}
            Some(Renewal::Unknown(error)) => return Err(error),
            Some(Renewal::Gone) | None => {
                let message = "the hold was gone before it was on replicas";
                return Err(Error::new(ErrorKind::Unavailable, message).on(DRIVER));
            }
        }
        if !Arc::ptr_eq(&live, &self.route.live(Lane::Replicas, bucket).await?) {
            let message = "the connection was made anew in between";
            return Err(Error::new(ErrorKind::Unavailable, message).on(DRIVER));
        }
        let wanted = self.options.replicas;
        // A little less than a request may take, so that the server answers in time.
        let patience = self.options.timeout * 3 / 4;
        let request = Request::new("WAIT")
            .arg(wanted.to_string())
            .arg(patience.as_millis().to_string());
        let reply = live.send(&request).await.map_err(translated)?;
        let confirmed = reply.as_int().ok_or_else(|| odd("the wait for replicas"))?;
        if confirmed >= i64::from(wanted) {
            return Ok(());
        }
        let message = "the grant did not reach as many replicas as `replicas` asks for in time, and \
                       was undone; look after the replicas, or ask for fewer";
        Err(Error::new(ErrorKind::NotReplicated, message)
            .on(DRIVER)
            .with("confirmed", confirmed)
            .with("wanted", wanted))
    }
}
