//! The backend that a URL asks for.

use lockkit_core::{Backend, Result};

use crate::backend::Redis;
use crate::config::{Config, Strategy};
use crate::redlock::Redlock;
use crate::simple::Simple;

/// Connects to the servers of a URL: [`Redlock`] for `redlock://`, [`Simple`] if it says
/// `strategy=simple`, else [`Redis`].
///
/// # Errors
///
/// Those of [`Redis::connect`], [`Simple::connect`] and [`Redlock::connect`].
///
/// # Cancel safety
///
/// Dropping the future closes what was opened.
///
/// # Examples
///
/// ```no_run
/// # async fn doc() -> lockkit_core::Result<()> {
/// let backend = lockkit_redis::connect("redis://127.0.0.1:6379?strategy=simple").await?;
/// assert_eq!(backend.descriptor().driver, "redis-simple");
/// # Ok(()) }
/// ```
pub async fn connect(url: &str) -> Result<Box<dyn Backend>> {
    if url.starts_with("redlock:") || url.starts_with("rediss+redlock:") {
        return Ok(Box::new(Redlock::connect(url).await?));
    }
    Ok(match Config::parse(url)?.options.strategy {
        Strategy::Direct => Box::new(Redis::connect(url).await?),
        Strategy::Simple => Box::new(Simple::connect(url).await?),
    })
}
