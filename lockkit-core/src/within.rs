//! A time limit that costs nothing when the answer is there at once.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Runs `call` for at most `limit`; `None` if that was too short. The timer is made only if the
/// first poll does not finish the call, so that a free lock in memory sets none.
pub(crate) async fn within<T>(limit: Duration, call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    let first = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
    match first {
        Poll::Ready(done) => Some(done),
        Poll::Pending => tokio::time::timeout(limit, call).await.ok(),
    }
}
