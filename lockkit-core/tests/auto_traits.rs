//! What callers may do with our types and futures, checked by the compiler.

use std::time::Duration;

use lockkit_core::{
    DistributedLock, Error, Guard, HoldId, Latch, Locker, Memory, MultiLock, Mutex, Notices, Owner,
    ReadLock, ReadWriteLock, SegmentedLock, Semaphore, Snapshot, WriteLock,
};

fn movable<T: Send + Sync + Unpin + 'static>() {}
fn send<T: Send>(_: T) {}

#[test]
fn types_move_between_threads() {
    movable::<Locker>();
    movable::<Mutex>();
    movable::<ReadWriteLock>();
    movable::<ReadLock>();
    movable::<WriteLock>();
    movable::<Semaphore>();
    movable::<SegmentedLock>();
    movable::<Latch>();
    movable::<MultiLock>();
    movable::<Guard>();
    movable::<Owner>();
    movable::<HoldId>();
    movable::<Error>();
    movable::<Notices>();
    movable::<Snapshot>();
    movable::<Box<dyn DistributedLock>>();
    assert!(size_of::<Error>() == 8, "results stay small");
    assert!(size_of::<Guard>() <= 88);
}

#[tokio::test]
async fn futures_move_between_threads() {
    let locker = Locker::new(Memory::new()).unwrap();
    let mutex = locker.mutex("a");
    send(mutex.lock());
    send(mutex.try_lock());
    let guard = mutex.lock().await.unwrap();
    send(locker.read_write("a").read().lock());
    send(locker.semaphore("a", 1).acquire());
    send(locker.segmented("a", 1).lock_key("k"));
    send(locker.latch("a").wait());
    send(locker.latch("a").count_down("p"));
    send(locker.multi_lock(["a", "b"]).lock());
    send(guard.lost());
    send(guard.revocation_requested());
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
    let locks: [Box<dyn DistributedLock>; 5] = [
        Box::new(locker.mutex("a")),
        Box::new(locker.read_write("a").write()),
        Box::new(locker.semaphore("a", 1)),
        Box::new(locker.segmented("a", 1)),
        Box::new(locker.multi_lock(["b", "c"])),
    ];
    for lock in locks {
        let guard = lock.lock().await.unwrap();
        assert!(lock.try_lock().await.unwrap().is_none(), "{lock:?}");
        let _ = lock.unlock(guard).await.unwrap();
    }
    let read = locker.read_write("a").read();
    let guard = read.lock().await.unwrap();
    assert!(DistributedLock::try_lock(&read).await.unwrap().is_some());
    let _ = DistributedLock::unlock(&read, guard).await.unwrap();
}
