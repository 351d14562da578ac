//! Asking a backend for what it does not promise.

use crate::odd::*;

/// Mutexes and nothing else. What it is asked for all the same it does.
struct Poor;

#[async_trait]
impl Oddity for Poor {
    fn promises(&self, memory: Descriptor) -> Descriptor {
        Descriptor {
            primitives: &[Primitive::Mutex],
            fair: false,
            line: false,
            revocation: false,
            ..memory
        }
    }

    fn entered(&self) {
        panic!("it was asked");
    }
}

fn locker() -> Locker {
    Locker::new(odd(&MemoryStore::new(), Poor).0).unwrap()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T>, why: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let said = error.to_string();
    assert!(said.starts_with("memory: unsupported: "), "{said}");
    assert!(said.contains(why), "{said}");
}

#[tokio::test]
async fn a_fair_lock_is_refused_where_there_is_no_order() {
    let locker = locker();
    let fair = locker.mutex("a").fair();
    refused(fair.lock().await, "drop `fair`");
    refused(fair.try_lock().await, "drop `fair`");
    let several = locker.multi_lock(["a", "b"]).fair();
    refused(several.lock().await, "drop `fair`");
}

#[tokio::test]
async fn a_request_to_release_is_refused_where_nobody_can_be_asked() {
    let mutex = locker().mutex("a").resource().unwrap();
    let asked = locker().request_release(&mutex).await;
    refused(asked, "cannot ask a holder to let go; evict the hold");
}

#[tokio::test]
async fn what_only_other_primitives_have_is_refused_by_whatever_way() {
    let locker = locker();
    let resource = Resource::new(Primitive::Semaphore, LockName::new("a").unwrap());
    let id = HoldId::new(resource.clone(), AttemptId::random());
    let why = "no semaphore";
    refused(locker.require(Primitive::Semaphore), why);
    refused(locker.semaphore("a", 5).acquire().await, why);
    refused(locker.semaphore("a", 5).resource(), why);
    refused(locker.inspect(&resource).await, why);
    refused(locker.request_release(&resource).await, why);
    refused(locker.evict(&id).await, why);
    refused(locker.renew(&id, TTL).await, why);
    refused(locker.release(&id).await, why);
    refused(locker.latch("a").try_set(3).await, "no latch");
    refused(locker.read_write("a").read().lock().await, "no rw");
}
