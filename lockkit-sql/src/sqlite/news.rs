//! News for those who hold: that an operator took a hold away, that somebody asks for it.

use lockkit_core::{AttemptId, HoldId, Resource};

use super::connection::Connection;
use super::error::Fault;
use super::files::SessionId;

const EVICTIONS: &str = "SELECT key, attempt FROM lockkit_eviction WHERE session = ?1";
const REQUESTS: &str = "SELECT key, attempt FROM lockkit_request WHERE session = ?1";
const FORGET_EVICTION: &str = "DELETE FROM lockkit_eviction WHERE session = ?1 AND attempt = ?2";
const FORGET_REQUEST: &str = "DELETE FROM lockkit_request WHERE session = ?1 AND attempt = ?2";

impl Connection {
    /// Tells what there is for a session of ours; returns whether there was anything.
    pub(super) async fn read_news(&mut self, session: SessionId) -> Result<bool, Fault> {
        let shared = self.shared();
        let lost = self.take_news(session, EVICTIONS, FORGET_EVICTION).await?;
        for id in &lost {
            shared.lose(id);
        }
        let wanted = self.take_news(session, REQUESTS, FORGET_REQUEST).await?;
        for id in &wanted {
            shared.ask(id);
        }
        Ok(!lost.is_empty() || !wanted.is_empty())
    }

    async fn take_news(
        &mut self,
        session: SessionId,
        find: &'static str,
        forget: &'static str,
    ) -> Result<Vec<HoldId>, Fault> {
        let found: Vec<(String, Vec<u8>)> = sqlx::query_as(find)
            .bind(session.as_bytes())
            .fetch_all(self.read().await?)
            .await?;
        let mut ids = Vec::with_capacity(found.len());
        for (key, attempt) in found {
            let write = self.write().await?;
            sqlx::query(forget)
                .bind(session.as_bytes())
                .bind(attempt.as_slice())
                .execute(&mut *write.sql)
                .await?;
            let id = Resource::from_key(&key).zip(AttemptId::from_bytes(&attempt));
            ids.extend(id.map(|(resource, attempt)| HoldId::new(resource, attempt)));
        }
        Ok(ids)
    }
}
