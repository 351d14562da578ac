//! A client of a store, as core sees it.

use std::fs::File;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;

use super::MemoryStore;
use super::ticket::MemoryTicket;
use crate::{
    Backend, Claim, Clock, Converted, CountDown, Descriptor, Error, ErrorKind, FenceClass,
    Guarantee, HoldId, LockName, Mode, Notices, Primitive, Released, Renewal, Resource, Result,
    Snapshot, Ticket, Together,
};

static DESCRIPTOR: Descriptor = Descriptor {
    driver: "memory",
    guarantee: Guarantee::Linearizable,
    fence: FenceClass::Durable,
    primitives: &Primitive::ALL,
    ttl: Duration::from_millis(10)..=Duration::from_secs(24 * 60 * 60),
    fair: true,
    line: true,
    revocation: true,
    at_once: true,
    wake_up: "in process",
    after_crash: "gone with the process",
    clock: Clock::Tokio,
};

/// A client of a [`MemoryStore`].
#[derive(Debug)]
pub struct Memory {
    pub(super) store: MemoryStore,
    pub(super) notices: OnceLock<Notices>,
    pub(super) closed: OnceLock<()>,
}

impl Memory {
    /// The only client of a new store.
    #[must_use]
    pub fn new() -> Self {
        MemoryStore::new().backend()
    }

    /// What this backend promises.
    #[must_use]
    pub fn descriptor() -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn check_open(&self) -> Result<()> {
        if self.closed.get().is_some() {
            let message = "this client was closed; take another from the store";
            return Err(Error::new(ErrorKind::Closed, message));
        }
        Ok(())
    }

    fn notices(&self) -> Notices {
        self.notices.get().cloned().unwrap_or_default()
    }

    fn renew_one(&self, id: &HoldId) -> Renewal {
        self.store.enter(id.resource(), |entry, step| {
            let held = entry
                .holds
                .iter_mut()
                .find(|held| held.attempt == id.attempt());
            let place = entry
                .queue
                .iter_mut()
                .find(|queued| queued.claim.attempt == id.attempt());
            let ttl = match (held, place) {
                (Some(held), _) => held.renew(step.now),
                (None, Some(place)) => place.renew(step.now),
                (None, None) => return Renewal::Gone,
            };
            Renewal::Renewed {
                sent_at: step.now,
                ttl,
            }
        })
    }

    fn remove(&self, id: &HoldId) -> Result<Released> {
        let attempt = id.attempt();
        let removed = self
            .store
            .enter(id.resource(), |entry, step| entry.remove(attempt, step));
        Ok(if removed {
            Released::Done
        } else {
            Released::NotHeld
        })
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Backend for Memory {
    fn descriptor(&self) -> &Descriptor {
        &DESCRIPTOR
    }

    fn attach(&self, notices: Notices) {
        // Called once; a second sink would be a bug of the caller, and the first one stays.
        let _ = self.notices.set(notices);
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        self.check_open()?;
        Ok(Box::new(MemoryTicket {
            store: self.store.clone(),
            claim,
            notices: self.notices(),
            wake: None,
        }))
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        ids.iter().map(|id| self.renew_one(id)).collect()
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        ids.iter().map(|id| self.remove(id)).collect()
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        self.store.enter(id.resource(), |entry, step| {
            let held = entry
                .holds
                .iter_mut()
                .find(|held| held.attempt == id.attempt());
            held.map_or(Renewal::Gone, |held| {
                held.detach(step.now, ttl);
                Renewal::Renewed {
                    sent_at: step.now,
                    ttl,
                }
            })
        })
    }

    async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        Ok(self
            .store
            .enter(resource, |entry, step| entry.snapshot(resource, step.now)))
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        let matches = |resource: &Resource| resource.name().as_str().starts_with(prefix);
        let mut snapshots = Vec::new();
        for resource in &self.store.resources(matches) {
            snapshots.push(self.inspect(resource).await?);
        }
        snapshots.retain(|snapshot| !snapshot.is_idle());
        Ok(snapshots)
    }

    async fn evict(&self, id: &HoldId) -> Result<Released> {
        let notices = self.store.enter(id.resource(), |entry, _| {
            let held = entry
                .holds
                .iter()
                .find(|held| held.attempt == id.attempt())?;
            Some(held.notices.clone())
        });
        // Told first, then freed: the victim must not work beside its successor.
        if let Some(notices) = notices {
            notices.gone(id);
        }
        self.remove(id)
    }

    async fn attempt_all(&self, claims: &[Claim]) -> Result<Together> {
        self.check_open()?;
        self.store.enter_all(claims, &self.notices())
    }

    async fn convert(&self, id: &HoldId, mode: Mode) -> Result<Converted> {
        self.store.enter(id.resource(), |entry, step| {
            entry.convert(id.attempt(), mode, step)
        })
    }

    async fn request_release(&self, resource: &Resource) -> Result<usize> {
        let asked: Vec<_> = self.store.enter(resource, |entry, _| {
            let live = entry.holds.iter_mut().filter(|held| !held.detached);
            live.map(|held| {
                held.asked_to_release = true;
                (
                    HoldId::new(resource.clone(), held.attempt),
                    held.notices.clone(),
                )
            })
            .collect()
        });
        for (id, notices) in &asked {
            notices.release_requested(id);
        }
        Ok(asked.len())
    }

    async fn set_size(&self, resource: &Resource, size: u32) -> Result<bool> {
        Ok(self
            .store
            .enter(resource, |entry, step| entry.set_size(size, step)))
    }

    async fn set_latch(&self, resource: &Resource, count: u32) -> Result<bool> {
        Ok(self
            .store
            .enter(resource, |entry, _| entry.set_latch(count)))
    }

    async fn count_down(&self, resource: &Resource, participant: &LockName) -> Result<CountDown> {
        Ok(self
            .store
            .enter(resource, |entry, step| entry.count_down(participant, step)))
    }

    fn session_file(&self, _: &HoldId) -> Option<File> {
        None
    }

    async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        let resources = self.store.resources(|_| true);
        Ok(vec![("resources", resources.len().to_string())])
    }

    async fn close(&self) -> Result<()> {
        let _ = self.closed.set(());
        Ok(())
    }
}
