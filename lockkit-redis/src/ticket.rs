//! One claim: a place in line, then a hold.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{Attempt, Claim, Clock, Grant, Instant, Result, Ticket};

use crate::by_kind::Asked;
use crate::inbox::{Granted, Standing};
use crate::mutex::Answer;
use crate::shared::Shared;

/// How often to look where the server sends no messages.
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct RedisTicket {
    shared: Arc<Shared>,
    claim: Claim,
    asked: Asked,
    /// Where a grant arrives; there from before the first request that may stand in line.
    standing: Option<Arc<Standing>>,
    /// Whether it holds now.
    let_in: bool,
}

impl RedisTicket {
    pub(crate) fn new(shared: Arc<Shared>, claim: Claim) -> Self {
        Self {
            shared,
            claim,
            asked: Asked::Never,
            let_in: false,
            standing: None,
        }
    }

    async fn ask(&mut self, sent_at: Instant) -> Result<Answer> {
        let asked = self.asked;
        if asked == Asked::Never {
            self.asked = Asked::Perhaps;
        }
        self.shared.attempt(&self.claim, asked, sent_at).await
    }

    async fn held(&mut self, granted: Granted) -> Result<Attempt> {
        if self.shared.options.replicas > 0 {
            Box::pin(self.shared.replicate(&[self.claim.id()])).await?;
        }
        self.let_in = true;
        Ok(Attempt::Held(Grant {
            fence: granted.fence,
            sent_at: granted.sent_at,
            ttl: self.claim.ttl,
            segment: granted.segment,
        }))
    }
}

#[async_trait]
impl Ticket for RedisTicket {
    async fn attempt(&mut self) -> Result<Attempt> {
        if self.claim.wait && self.standing.is_none() {
            self.standing = Some(self.shared.inbox.expect(self.claim.attempt));
        }
        let pushed = self
            .standing
            .as_ref()
            .and_then(|standing| standing.granted());
        // One that is over may be an old one, late; the server knows.
        let is_over = |granted: &Granted| granted.sent_at + self.claim.ttl <= Clock::Boot.now();
        if let Some(granted) = pushed.filter(|granted| !is_over(granted)) {
            return self.held(granted).await;
        }
        let sent_at = Clock::Boot.now();
        match self.ask(sent_at).await? {
            Answer::Held { fence, segment } => {
                let granted = Granted {
                    fence,
                    segment,
                    sent_at,
                };
                self.held(granted).await
            }
            Answer::Busy(left) => {
                if let Some(standing) = &self.standing {
                    standing.found_waiting(sent_at);
                    self.asked = Asked::InLine;
                }
                let deaf = self.shared.inbox.is_deaf();
                Ok(Attempt::Busy {
                    recheck_after: Some(if deaf { left.min(POLL) } else { left }),
                })
            }
        }
    }

    async fn changed(&mut self) {
        match &self.standing {
            Some(standing) => standing.news.notified().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for RedisTicket {
    fn drop(&mut self) {
        // A place is a place until it is released.
        if self.let_in && self.standing.is_some() {
            self.shared.inbox.forget(self.claim.attempt);
        }
    }
}
