//! Permits, sizes stored with a name, and segments.

use crate::odd::*;

fn resource(primitive: Primitive) -> Resource {
    Resource::new(primitive, LockName::new("a").unwrap())
}

#[tokio::test(start_paused = true)]
async fn another_size_is_refused_and_leaves_no_trace() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let guard = locker.semaphore("a", 2).acquire_many(2).await.unwrap();
    for wait in [ms(0), ms(100)] {
        let error = locker.semaphore("a", 3).wait(wait).acquire().await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::ConfigMismatch);
    }
    let _ = guard.unlock().await.unwrap();
    sleep(ms(100)).await;
    assert_eq!(census(&store).await, 0);
    let snapshot = locker
        .inspect(&resource(Primitive::Semaphore))
        .await
        .unwrap();
    assert_eq!(snapshot.size, Some(2), "the size outlives its holders");
    assert!(
        locker
            .segmented("a", 5)
            .try_lock_any()
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_a_lowered_limit_refuses_does_not_stop_those_behind_it() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let permits = locker.semaphore("a", 4);
    let held = permits.acquire_many(3).await.unwrap();
    let (big, small) = (permits.clone(), permits.clone());
    let big = tokio::spawn(async move { big.acquire_many(4).await });
    sleep(ms(10)).await;
    let small = tokio::spawn(async move { small.acquire().await });
    sleep(ms(10)).await;
    let permits = permits.set_limit(2).await.unwrap();
    let error = timeout(TTL, big).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConfigMismatch);
    assert!(!small.is_finished(), "3 of 2 are out");
    assert!(permits.try_acquire().await.unwrap().is_none());
    assert_eq!(permits.available().await.unwrap(), 0);
    let _ = held.unlock().await.unwrap();
    let small = timeout(ms(100), small).await.unwrap().unwrap().unwrap();
    drop(small);
    sleep(ms(100)).await;
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_biggest_numbers_neither_wrap_nor_take_for_ever() {
    let locker = Locker::new(Memory::new()).unwrap();
    let permits = locker.semaphore("a", u32::MAX);
    let all = permits.acquire_many(u32::MAX).await.unwrap();
    assert!(permits.try_acquire().await.unwrap().is_none());
    assert!(permits.try_acquire_many(u32::MAX).await.unwrap().is_none());
    assert_eq!(permits.available().await.unwrap(), 0);
    drop(all);
    let segments = locker.segmented("a", u32::MAX);
    let last = segments.lock_segment(u32::MAX - 1).await.unwrap();
    let (one, two) = (
        segments.lock_any().await.unwrap(),
        segments.lock_any().await.unwrap(),
    );
    assert_eq!(last.segment(), Some(u32::MAX - 1));
    assert_ne!(one.segment(), two.segment());
}

#[tokio::test(start_paused = true)]
async fn who_wants_one_segment_and_who_wants_any_both_get_theirs() {
    let store = MemoryStore::new();
    let done = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for number in 0..12_u32 {
        let locker = Locker::new(store.backend()).unwrap();
        let done = Arc::clone(&done);
        tasks.push(tokio::spawn(async move {
            let segments = locker.segmented("a", 3);
            for _ in 0..20 {
                let guard = match number % 4 {
                    0 => segments.lock_segment(1).await.unwrap(),
                    _ => segments.lock_any().await.unwrap(),
                };
                sleep(ms(3)).await;
                let _ = guard.unlock().await.unwrap();
                done.fetch_add(1, SeqCst);
            }
        }));
    }
    for task in tasks {
        // 12 × 20 × 3 ms over 3 segments, and the 60 of segment 1 in line with the others.
        timeout(ms(1_000), task).await.unwrap().unwrap();
    }
    assert_eq!(done.load(SeqCst), 240);
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_or_repeated_release_of_a_permit_frees_nothing() {
    let store = MemoryStore::new();
    let one = Locker::new(store.backend()).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    let permits = one.semaphore("a", 2);
    let first = permits.acquire().await.unwrap().detach(TTL).await.unwrap();
    let _held = permits.acquire().await.unwrap();
    assert_eq!(other.release(&first).await.unwrap(), Released::Done);
    for locker in [&one, &other] {
        assert_eq!(locker.release(&first).await.unwrap(), Released::NotHeld);
    }
    let error = other.renew(&first, TTL).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!(permits.available().await.unwrap(), 1);
}

/// Random claims, releases and changes of the limit: never more out than the limit that was in
/// force when the last of them was let in, first come, first served, and nobody left standing.
#[tokio::test(start_paused = true)]
async fn permits_keep_to_the_limit_and_the_order_whatever_is_done() {
    for seed in 0..40_u64 {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = move |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % n
        };
        let store = MemoryStore::new();
        let locker = Locker::new(store.backend()).unwrap();
        let mut permits = locker.semaphore("a", 4);
        let mut held: Vec<(u32, Guard)> = Vec::new();
        let mut waiting: Vec<(u32, tokio::task::JoinHandle<Result<Guard>>)> = Vec::new();
        for step in 0..80 {
            match next(4) {
                0 | 1 => {
                    let count = 1 + u32::try_from(next(u64::from(permits.limit()))).unwrap();
                    let permits = permits.clone();
                    let claim = tokio::spawn(async move { permits.acquire_many(count).await });
                    waiting.push((count, claim));
                }
                2 if !held.is_empty() => {
                    let at = usize::try_from(next(held.len() as u64)).unwrap();
                    let _ = held.swap_remove(at).1.unlock().await.unwrap();
                }
                3 if next(4) == 0 => {
                    let limit = 1 + u32::try_from(next(6)).unwrap();
                    permits = permits.set_limit(limit).await.unwrap();
                }
                3 if !waiting.is_empty() => {
                    let at = usize::try_from(next(waiting.len() as u64)).unwrap();
                    waiting.remove(at).1.abort();
                }
                _ => {}
            }
            sleep(ms(1)).await;
            // Whoever entered did so in order.
            let mut passed = false;
            let mut still = Vec::new();
            for (count, claim) in waiting {
                if !claim.is_finished() {
                    passed = true;
                    still.push((count, claim));
                    continue;
                }
                match claim.await.unwrap() {
                    Ok(guard) => {
                        assert!(!passed, "seed {seed}, step {step}: overtaken");
                        held.push((count, guard));
                        let out: u32 = held.iter().map(|(count, _)| count).sum();
                        assert!(out <= permits.limit(), "seed {seed}, step {step}: {out}");
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::ConfigMismatch);
                        assert!(count > permits.limit());
                    }
                }
            }
            waiting = still;
            let out: u32 = held.iter().map(|(count, _)| count).sum();
            if let Some((count, _)) = waiting.first() {
                assert!(
                    out + count > permits.limit(),
                    "seed {seed}, step {step}: idle"
                );
            }
        }
    }
}
