//! Looking at all resources, for people.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::StreamExt;
use futures_util::stream::iter;
use lockkit_core::{LockName, Resource, Result, Snapshot};

use crate::error::{odd, translated};
use crate::shared::Shared;
use crate::transport::{Live, Request};

/// How many keys the server looks at in one step of a scan: a step of this many takes it less than a
/// millisecond, and does nothing else meanwhile.
const STEP: &str = "1000";

/// How many resources are looked at at a time.
const AT_ONCE: usize = 64;

impl Shared {
    /// See [`Backend::list`](lockkit_core::Backend::list).
    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        let resources = self.resources("*", prefix).await?;
        let mut snapshots = Vec::with_capacity(resources.len());
        let looks = iter(resources).map(|resource| async move { self.inspect(&resource).await });
        let mut looks = pin!(looks.buffered(AT_ONCE));
        while let Some(snapshot) = looks.next().await {
            snapshots.push(snapshot?);
        }
        snapshots.retain(|snapshot| !snapshot.is_idle());
        Ok(snapshots)
    }

    /// The resources of a kind, `*` for all, whose name begins with `prefix` and that have a key.
    pub(crate) async fn resources(&self, kind: &str, prefix: &str) -> Result<BTreeSet<Resource>> {
        let beginning = match prefix {
            "" => String::new(),
            prefix => match LockName::new(prefix) {
                // Encoding goes byte by byte, so the encoded prefix begins every encoded name.
                Ok(prefix) => prefix.encoded().to_string(),
                // Longer than any name: nothing begins with it.
                Err(_) => return Ok(BTreeSet::new()),
            },
        };
        let pattern = self.prefix.pattern(&format!("{kind}/{beginning}"));
        let mut resources = BTreeSet::new();
        for live in self.route.all().await? {
            self.scan(&live, &pattern, &mut resources).await?;
        }
        resources.retain(|resource| resource.name().as_str().starts_with(prefix));
        Ok(resources)
    }

    /// Finds the resources that have a key like this.
    async fn scan(
        &self,
        live: &Live,
        pattern: &str,
        resources: &mut BTreeSet<Resource>,
    ) -> Result<()> {
        let mut cursor = String::from("0");
        loop {
            let request = Request::new("SCAN").arg(&cursor).args(["MATCH", pattern]);
            let request = request.args(["COUNT", STEP]);
            let reply = live.send(&request).await.map_err(translated)?;
            let Some([next, keys]) = reply.as_array() else {
                return Err(odd("a scan"));
            };
            let keys = keys.as_array().unwrap_or_default().iter();
            let keys = keys.filter_map(|key| key.as_text());
            resources.extend(keys.filter_map(|key| self.prefix.resource_of(key)));
            cursor = next.as_text().ok_or_else(|| odd("a scan"))?.to_owned();
            if cursor == "0" {
                return Ok(());
            }
        }
    }
}
