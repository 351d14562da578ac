//! Lies about who is woken, and who is kept waiting.

use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{Attempt, Claim, HoldId, Memory, Released, Result, Ticket};
use tokio::sync::{Mutex, Notify};

use super::lie::{Lie, honest_release};

/// Nobody rings; waiters live on timers.
#[derive(Debug, Default)]
pub(super) struct NeverWakes;

#[async_trait]
impl Lie for NeverWakes {
    async fn changed(&self, _: &mut Box<dyn Ticket>) {
        std::future::pending().await
    }
}

/// Subscribes after the attempt instead of before.
#[derive(Debug, Default)]
pub(super) struct ListensTooLate(Notify);

#[async_trait]
impl Lie for ListensTooLate {
    async fn changed(&self, _: &mut Box<dyn Ticket>) {
        self.0.notified().await;
    }

    async fn release(&self, truth: &Memory, id: &HoldId) -> Result<Released> {
        let released = honest_release(truth, id).await;
        // Reaches those who listen at this moment, and is forgotten.
        self.0.notify_waiters();
        released
    }
}

/// Keeps the only connection until the caller comes to fetch the reply.
#[derive(Debug, Default)]
pub(super) struct KeepsTheConnection(Mutex<()>);

#[async_trait]
impl Lie for KeepsTheConnection {
    async fn attempt(
        &self,
        _: &Memory,
        _: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        let _connection = self.0.lock().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        ticket.attempt().await
    }
}
