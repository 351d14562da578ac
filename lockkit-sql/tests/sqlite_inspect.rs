//! What is shown of locks.
#![cfg(feature = "sqlite")]

mod support;

use lockkit_core::{Backend, Mode, Primitive};
use support::*;

#[tokio::test]
async fn who_was_asked_to_let_go_is_shown_for_that_hold_only() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let permits = Mode::Permits { count: 1, limit: 3 };
    let permit = || claim_of(Primitive::Semaphore, "a", permits);
    let (mutex, _) = hold(&one, claim("a")).await;
    let (first, _) = hold(&one, permit()).await;
    let (detached, _) = hold(&one, permit()).await;
    assert_renewed(&one.extend(&detached, LONG).await);
    let asked = two.request_release(first.resource()).await.unwrap();
    assert_eq!(asked, 1, "nobody would hear of the detached one");
    assert_eq!(two.request_release(mutex.resource()).await.unwrap(), 1);
    hold(&two, permit()).await;
    let seen = inspect_of(&two, &first).await;
    assert_eq!(seen.size, Some(3));
    for holder in seen.holders {
        assert_eq!(holder.asked_to_release, holder.id == first);
        assert_eq!(holder.mode, permits);
    }
    assert!(inspect(&two, "a").await.holders[0].asked_to_release);
    release(&one, &mutex).await;
    hold(&two, claim("a")).await;
    assert!(!inspect(&two, "a").await.holders[0].asked_to_release);
}

#[tokio::test]
async fn nasty_names_are_listed_in_order_by_prefix() {
    let store = Store::new();
    let backend = store.client().await;
    let names = [
        "é",
        "a/b",
        "a",
        "A",
        "\0",
        "x'; DROP TABLE lockkit_lock; --",
        "a%",
        "😀",
    ];
    for name in names {
        hold(&backend, claim(name)).await;
    }
    let list = |prefix: &'static str| {
        let backend = &backend;
        async move {
            let listed = backend.list(prefix).await.unwrap();
            listed
                .iter()
                .map(|found| found.resource.name().as_str().to_owned())
                .collect::<Vec<_>>()
        }
    };
    let mut sorted: Vec<_> = names.iter().map(ToString::to_string).collect();
    sorted.sort();
    assert_eq!(list("").await, sorted);
    assert_eq!(list("a").await, ["a", "a%", "a/b"]);
    assert_eq!(list("a/").await, ["a/b"]);
    assert!(list("zzz").await.is_empty());
    let idle = inspect(&backend, "never").await;
    assert!(idle.is_idle() && idle.fence.is_none());
    let held = inspect(&backend, "a/b").await;
    assert_eq!(held.holders[0].label.text(), "a test");
    assert!(!held.holders[0].detached && held.holders[0].remaining <= LONG);
}
