//! Taking a mutex.

use lockkit_core::{Claim, Result};

use super::record::value_of;
use crate::error::{odd, translated};
use crate::shared::{Shared, milliseconds};
use crate::transport::{Errand, Lane, Reply, Request};

/// Takes a mutex if it is free; whether it did.
pub(super) async fn take(shared: &Shared, claim: &Claim) -> Result<bool> {
    let keys = shared.prefix.keys(&claim.resource);
    let request = Request::new("SET")
        .arg(keys.main())
        .arg(value_of(claim))
        .args(["NX", "PX"])
        .arg(milliseconds(claim.ttl).to_string());
    let errand = Errand::Command(keys.bucket, &request);
    let reply = shared.route.run(Lane::Work, &errand).await?;
    match reply.map_err(translated)? {
        Reply::Nil => Ok(false),
        Reply::Bytes(_) => Ok(true),
        _ => Err(odd("an attempt")),
    }
}
