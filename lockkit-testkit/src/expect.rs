//! What must be so soon: got, done, in line, seen.

use std::time::Duration;

use lockkit_core::{DistributedLock, Fence, Guard, Resource, Snapshot};
use tokio::time::{Instant, sleep, timeout};

use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Client, Failure, Fixture, Need, Outcome, Waiting};

impl Fixture {
    /// Locks what must be free, or become free soon, and gives it back: the way to see that
    /// nothing is in the way. Tells the fence.
    ///
    /// # Errors
    ///
    /// If it is not free within [`soon`](Self::soon).
    #[track_caller]
    pub fn passes<L: DistributedLock + Clone>(
        &self,
        lock: &L,
    ) -> impl Future<Output = Outcome<Fence>> + Send + use<L> {
        let guard = self.gets(lock);
        async move {
            let guard = guard.await?;
            let fence = guard.fence();
            unlock(guard).await?;
            Ok(fence)
        }
    }

    /// Locks what must be free, or become free soon.
    ///
    /// # Errors
    ///
    /// If it is not free within [`soon`](Self::soon).
    #[track_caller]
    pub fn gets<L: DistributedLock + Clone>(
        &self,
        lock: &L,
    ) -> impl Future<Output = Outcome<Guard>> + Send + use<L> {
        let lock = lock.clone();
        self.is_done(async move { lock.lock().await })
    }

    /// Awaits what must be done soon.
    ///
    /// # Errors
    ///
    /// If it is not done within [`soon`](Self::soon), or fails.
    #[track_caller]
    pub fn is_done<T, F>(&self, call: F) -> impl Future<Output = Outcome<T>> + Send + use<T, F>
    where
        F: Future<Output = lockkit_core::Result<T>> + Send,
    {
        let bound = self.soon();
        let late = Failure::new(format!("not done after {bound:?}"));
        async move {
            match timeout(bound, call).await {
                Ok(outcome) => Ok(outcome?),
                Err(_) => Err(late),
            }
        }
    }

    /// Starts a call that has to wait, and returns once it stands in line, behind whoever does.
    ///
    /// # Errors
    ///
    /// If it does not stand in line within [`soon`](Self::soon).
    pub async fn queues<T: Send + 'static>(
        &self,
        client: &Client,
        resource: &Resource,
        call: impl Future<Output = lockkit_core::Result<T>> + Send + 'static,
    ) -> Outcome<Waiting<T>> {
        let before = client.inspect(resource).await?.waiters.len();
        let call = tokio::spawn(call);
        self.stand(client, resource, before + 1).await?;
        Ok(Waiting::new(call, self.soon()))
    }

    /// Returns once so many wait. Where the service does not know that, it gives them a moment in
    /// which they have most likely found out that they have to.
    ///
    /// # Errors
    ///
    /// If fewer do within [`soon`](Self::soon).
    pub async fn stand(&self, client: &Client, resource: &Resource, count: usize) -> Outcome {
        if !Need::Line.met_by(&**self.harness()) {
            sleep(Duration::from_millis(50)).await;
            return Ok(());
        }
        let enough = |snapshot: &Snapshot| snapshot.waiters.len() >= count;
        self.until_of(client, resource, "enough waiters", enough)
            .await?;
        Ok(())
    }

    /// Waits until the state of a mutex is as it must become.
    ///
    /// # Errors
    ///
    /// If it is not so within [`soon`](Self::soon).
    pub async fn until(
        &self,
        client: &Client,
        name: &str,
        what: &str,
        so: impl Fn(&Snapshot) -> bool + Send,
    ) -> Outcome<Snapshot> {
        self.until_of(client, &mutex(name)?, what, so).await
    }

    /// Waits until the state of a resource is as it must become.
    ///
    /// # Errors
    ///
    /// If it is not so within [`soon`](Self::soon).
    pub async fn until_of(
        &self,
        client: &Client,
        resource: &Resource,
        what: &str,
        so: impl Fn(&Snapshot) -> bool + Send,
    ) -> Outcome<Snapshot> {
        let end = Instant::now() + self.soon();
        loop {
            let snapshot = client.inspect(resource).await?;
            if so(&snapshot) {
                return Ok(snapshot);
            }
            ensure!(
                Instant::now() < end,
                "not {what} after {:?}: {snapshot:?}",
                self.soon()
            );
            sleep(Duration::from_millis(5)).await;
        }
    }
}
