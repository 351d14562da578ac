//! The task that listens for this process, and what it does with what it hears.

use std::future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lockkit_core::AttemptId;
use sqlx::types::Json;

use super::bell::Heard;
use super::connection::Connection;
use super::database::{Database, WeakDatabase};
use super::ear::Ear;
use super::error::Fault;
use super::files::{Files, SessionId};
use super::registry::{Place, Waiting};
use super::shared::Shared;

/// How often to look where nothing can be heard, at first and at last.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LAST_LOOK: Duration = Duration::from_millis(50);

/// The same while nobody waits and only news for holders may come.
const LOOK_FOR_NEWS: Duration = Duration::from_millis(250);

/// How long a session lives before it is listened to although nothing waits. See [`Bell`].
///
/// [`Bell`]: super::bell::Bell
const LISTEN_AFTER: Duration = Duration::from_millis(200);

/// Starts to listen. The task keeps nothing alive.
pub(super) fn start(shared: &Arc<Shared>, database: &Database) {
    let task = tokio::spawn(listen(Arc::downgrade(shared), database.downgrade()));
    shared.bell.served_by(task.abort_handle());
}

async fn listen(shared: Weak<Shared>, database: WeakDatabase) {
    let mut pause = FIRST_LOOK;
    loop {
        let Some(strong) = shared.upgrade() else {
            return;
        };
        let ear = strong.bell.ear();
        let stirred = Arc::clone(&strong.bell.stirred);
        let counts = strong.registry.counts();
        let is_deaf = strong.bell.is_deaf();
        let next_look = match (counts.waiting, counts.holding) {
            (0, 0) => None,
            (0, _) => Some(LOOK_FOR_NEWS),
            _ => Some(pause),
        };
        let next_look = next_look.filter(|_| is_deaf);
        let inattentive = strong.bell.is_inattentive();
        drop(strong);
        let looked_after = async {
            match next_look {
                Some(pause) => tokio::time::sleep(pause).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            () = stirred.notified() => pause = FIRST_LOOK,
            () = something_to_hear(ear.as_ref()) => {
                let Some(shared) = shared.upgrade() else { return };
                let Some(ear) = &ear else { continue };
                let heard = shared.bell.hear(ear);
                act(&shared, &database, heard).await;
            }
            () = tokio::time::sleep(LISTEN_AFTER), if inattentive => {
                let Some(shared) = shared.upgrade() else { return };
                shared.bell.attend(shared.files.database());
                // Our bell may have been rung, and the file moved, before we listened.
                let missed = Heard { rung: true, moved: true, ..Heard::default() };
                act(&shared, &database, missed).await;
            }
            () = looked_after => {
                let Some(shared) = shared.upgrade() else { return };
                let found = look(&shared, &database).await;
                pause = if found { FIRST_LOOK } else { (pause * 3 / 2).min(LAST_LOOK) };
            }
        }
    }
}

async fn something_to_hear(ear: Option<&Arc<Ear>>) {
    match ear {
        Some(ear) => ear.prick().await,
        None => future::pending().await,
    }
}

async fn act(shared: &Arc<Shared>, database: &WeakDatabase, heard: Heard) {
    for (session, followers) in heard.closed {
        mourn(shared, session, followers);
    }
    if heard.overflow {
        for (id, _) in shared.registry.waiting() {
            shared.registry.wake(id.attempt());
        }
    }
    let Some(database) = database.upgrade() else {
        return;
    };
    if heard.moved || heard.overflow {
        let verified = database
            .run(|c| Box::pin(async move { Ok(c.verify()?) }))
            .await;
        // An error here is an error of the next call as well.
        drop(verified);
    }
    if heard.rung || heard.overflow {
        let counts = shared.registry.counts();
        if counts.waiting == 1 {
            for (id, _) in shared.registry.waiting() {
                shared.registry.wake(id.attempt());
            }
        }
        if counts.waiting > 1 || counts.holding > 0 {
            answer(shared, &database).await;
        }
    }
}

/// Finds out for whom the bell was rung.
async fn answer(shared: &Arc<Shared>, database: &Database) -> bool {
    let found = database
        .run(|c| Box::pin(async move { c.answer_bell().await }))
        .await;
    found.unwrap_or_else(|_| {
        // Let them find out for themselves.
        for (id, _) in shared.registry.waiting() {
            shared.registry.wake(id.attempt());
        }
        true
    })
}

/// Wakes those who waited behind a session that is over.
fn mourn(shared: &Arc<Shared>, session: SessionId, followers: Vec<AttemptId>) {
    let wake = move |shared: &Shared| {
        for follower in &followers {
            shared.registry.wake(*follower);
        }
    };
    let is_closed = move |files: &Files| files.is_abandoned(session) || !files.has(session);
    if is_closed(&shared.files) {
        return wake(shared);
    }
    // The kernel tells of the close a moment before it drops the lock.
    let files = shared.files.clone();
    let shared = Arc::downgrade(shared);
    tokio::spawn(async move {
        for pause in [1, 1, 2, 4, 8, 16, 32] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            if is_closed(&files) {
                break;
            }
        }
        if let Some(shared) = shared.upgrade() {
            wake(&shared);
        }
    });
}

/// What listening would have told.
async fn look(shared: &Arc<Shared>, database: &WeakDatabase) -> bool {
    let Some(database) = database.upgrade() else {
        return false;
    };
    let mut found = answer(shared, &database).await;
    for (_, waiting) in shared.registry.waiting() {
        let behind = waiting.place().map_or_else(Vec::new, |place| place.behind);
        let is_over = |session: &SessionId| shared.files.is_abandoned(*session);
        // Whoever found it dead first has removed its file.
        let is_missing = |session: &SessionId| !shared.files.has(*session);
        if behind.iter().any(is_over) {
            waiting.changed.notify_one();
            found = true;
        } else if behind.iter().any(is_missing) {
            // It lives if the file was only tidied away, so look as seldom as otherwise.
            waiting.changed.notify_one();
        }
    }
    found
}

/// Follows whoever stands before a claim that is busy. Returns whether this process listens only
/// from now on, so that another attempt has to find what happened before.
pub(super) fn follow(shared: &Shared, attempt: AttemptId, waiting: &Waiting) -> bool {
    if shared.bell.is_deaf() {
        // One more to look for.
        shared.bell.stirred.notify_one();
        return false;
    }
    let is_new = shared.bell.attend(shared.files.database());
    let behind = waiting.place().map_or_else(Vec::new, |place| place.behind);
    shared.bell.follow_only(&behind, attempt);
    for session in behind {
        let path = shared.files.session(session);
        let is_missing = shared.bell.follow(&path, session, attempt);
        // It may have died before we listened.
        if is_missing || shared.files.is_abandoned(session) {
            waiting.changed.notify_one();
        }
    }
    is_new
}

/// Which of `?1`, an array of `[key, ticket, rung]`, are not as they were.
const CHANGED: &str = "
SELECT j.key, w.rung FROM json_each(?1) j
  LEFT JOIN lockkit_waiter w ON w.key = j.value ->> 0 AND w.ticket = j.value ->> 1
 WHERE w.rung IS NOT j.value ->> 2";

impl Connection {
    /// Wakes exactly those whose place has changed, and tells the news of those who hold; returns whether there was anybody.
    pub(super) async fn answer_bell(&mut self) -> Result<bool, Fault> {
        let shared = self.shared();
        let mut standing: Vec<(Arc<Waiting>, Place)> = Vec::new();
        let mut wanted: Vec<(String, i64, i64)> = Vec::new();
        for (id, waiting) in shared.registry.waiting() {
            let Some(place) = waiting.place() else {
                continue;
            };
            wanted.push((id.resource().key(), place.ticket, place.rung));
            standing.push((waiting, place));
        }
        let mut found = false;
        if !wanted.is_empty() {
            let changed: Vec<(i64, Option<i64>)> = sqlx::query_as(CHANGED)
                .bind(Json(&wanted))
                .fetch_all(self.read().await?)
                .await?;
            for (at, rung) in changed {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let Some((waiting, place)) = standing.get(at) else {
                    continue;
                };
                if let Some(rung) = rung {
                    waiting.stand(Some(Place {
                        rung,
                        ..place.clone()
                    }));
                }
                waiting.changed.notify_one();
                found = true;
            }
        }
        if shared.registry.counts().holding > 0 {
            for session in shared.registry.sessions() {
                found |= self.read_news(session.id).await?;
            }
        }
        Ok(found)
    }
}
