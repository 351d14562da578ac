use super::*;
use lockkit_core::{Attempt, AttemptId, Label, LockName, Order, Primitive};

async fn attempt(backend: &Sqlite, name: &str) -> (HoldId, Result<Attempt>) {
    let claim = Claim {
        resource: Resource::new(Primitive::Mutex, LockName::new(name).unwrap()),
        mode: Mode::Exclusive,
        order: Order::Barging,
        ttl: Duration::from_secs(30),
        attempt: AttemptId::random(),
        label: Label::process(),
        wait: true,
    };
    let id = claim.id();
    (id, backend.enter(claim).unwrap().attempt().await)
}

#[tokio::test]
async fn grants_are_flushed_also_after_a_release_that_was_not() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("locks.db").display());
    let backend = Sqlite::connect(&url).await.unwrap();
    for _ in 0..3 {
        let (id, held) = attempt(&backend, "a").await;
        assert!(matches!(held, Ok(Attempt::Held(_))));
        let released = backend.release(&[id]).await;
        assert_eq!(released[0].as_ref().unwrap(), &Released::Done);
        let level = backend.database.run(|c| {
            Box::pin(async move {
                let (level,): (i64,) = sqlx::query_as("PRAGMA synchronous")
                    .fetch_one(c.read().await?)
                    .await?;
                Ok(level)
            })
        });
        assert_eq!(level.await.unwrap(), 2, "2 is FULL");
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("locks.db").display());
    let backend = Sqlite::connect(&url).await.unwrap();
    let (first, held) = attempt(&backend, "first").await;
    assert!(matches!(held, Ok(Attempt::Held(_))));
    // The file cannot grow any more.
    let limit = backend.database.run(|c| {
        Box::pin(async move {
            sqlx::query("PRAGMA max_page_count = 1")
                .execute(c.read().await?)
                .await?;
            Ok(())
        })
    });
    limit.await.unwrap();
    let mut held = Vec::new();
    let error = loop {
        let name = format!("{:0>200}", held.len());
        match attempt(&backend, &name).await {
            (id, Ok(Attempt::Held(_))) => held.push(id),
            (_, Ok(busy)) => panic!("{busy:?}"),
            (_, Err(error)) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    held.push(first);
    let renewed = backend.renew(&held).await;
    assert!(
        renewed
            .iter()
            .all(|renewal| matches!(renewal, Renewal::Renewed { .. }))
    );
    for released in backend.release(&held).await {
        assert_eq!(released.unwrap(), Released::Done);
    }
}
