//! A call that has to wait, while the case goes on.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::{Failure, Outcome};

/// A call that stands in line.
#[derive(Debug)]
pub struct Waiting<T> {
    call: JoinHandle<lockkit_core::Result<T>>,
    bound: Duration,
}

impl<T: Send> Waiting<T> {
    pub(crate) const fn new(call: JoinHandle<lockkit_core::Result<T>>, bound: Duration) -> Self {
        Self { call, bound }
    }

    /// Whether it still has to wait, after a moment to be woken in.
    pub async fn waits(&self) -> bool {
        sleep(Duration::from_millis(20)).await;
        !self.call.is_finished()
    }

    /// What it is answered, which must be soon.
    ///
    /// # Errors
    ///
    /// If it goes on waiting.
    #[track_caller]
    pub fn answer(self) -> impl Future<Output = Outcome<lockkit_core::Result<T>>> + Send {
        let late = Failure::new(format!("still waiting after {:?}", self.bound));
        async move {
            match timeout(self.bound, self.call).await {
                Ok(answer) => Ok(answer?),
                Err(_) => Err(late),
            }
        }
    }

    /// What it waited for, which it must get soon.
    ///
    /// # Errors
    ///
    /// If it goes on waiting, or fails.
    #[track_caller]
    pub fn served(self) -> impl Future<Output = Outcome<T>> + Send {
        let answer = self.answer();
        async move { Ok(answer.await??) }
    }

    /// Drops the call, and with it its place in line.
    pub async fn drop_call(self) {
        self.call.abort();
        let _ = self.call.await;
    }
}
