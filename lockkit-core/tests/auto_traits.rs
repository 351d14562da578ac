//! What callers may do with our types and futures, checked by the compiler.

use std::time::Duration;

use lockkit_core::{
    DistributedLock, Error, Guard, HoldId, Locker, Memory, Mutex, Notices, Owner, Snapshot,
};

fn movable<T: Send + Sync + Unpin + 'static>() {}
fn send<T: Send>(_: T) {}

#[test]
fn types_move_between_threads() {
    movable::<Locker>();
    movable::<Mutex>();
    movable::<Guard>();
    movable::<Owner>();
    movable::<HoldId>();
    movable::<Error>();
    movable::<Notices>();
    movable::<Snapshot>();
    movable::<Box<dyn DistributedLock>>();
    assert!(size_of::<Error>() == 8, "results stay small");
    assert!(size_of::<Guard>() <= 64);
}

#[tokio::test]
async fn futures_move_between_threads() {
    let locker = Locker::new(Memory::new()).unwrap();
    let mutex = locker.mutex("a");
    send(mutex.lock());
    send(mutex.try_lock());
    let guard = mutex.lock().await.unwrap();
    send(guard.lost());
    send(guard.while_held(async {}));
    send(locker.renew(guard.id(), Duration::from_secs(1)));
    send(locker.release(guard.id()));
    send(locker.list(""));
    send(locker.evict(guard.id()));
    send(locker.close());
    send(guard.unlock());
}

#[tokio::test]
async fn a_lock_can_be_a_trait_object() {
    let locker = Locker::new(Memory::new()).unwrap();
    let locks: Vec<Box<dyn DistributedLock>> = vec![Box::new(locker.mutex("a"))];
    let guard = locks[0].lock().await.unwrap();
    assert!(locks[0].try_lock().await.unwrap().is_none());
    let _ = locks[0].unlock(guard).await.unwrap();
}
