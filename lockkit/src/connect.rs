//! From a URL to a locker.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex as StdMutex, PoisonError};

use lockkit_core::{
    Descriptor, Error, ErrorKind, Locker, LockerOptions, Memory, MemoryStore, Result,
};

/// Schemes of backends that this build may lack, with the feature that brings them.
const FEATURES: &[(&str, &str)] = &[
    ("redis", "redis"),
    ("rediss", "redis"),
    ("redis+unix", "redis"),
    ("redis+sentinel", "redis"),
    ("rediss+sentinel", "redis"),
    ("redis+cluster", "redis"),
    ("rediss+cluster", "redis"),
    ("redlock", "redis"),
    ("rediss+redlock", "redis"),
    ("sqlite", "sqlite"),
];

/// Opens the backend that `url` names, with default options.
///
/// | URL | backend | feature |
/// | --- | --- | --- |
/// | `memory:` | a store of its own in this process | always there |
/// | `memory:NAME` | the store of that name in this process, shared by all who name it | always there |
/// | `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]` | a Redis server; `rediss://` with TLS, `redis+unix:///PATH` by a socket | `redis` |
/// | `redis+sentinel://HOST[:PORT],…/NAME` | the master that sentinels watch under this name | `redis` |
/// | `redis+cluster://HOST[:PORT],…` | a Redis cluster, by some of its nodes | `redis` |
/// | `redlock://HOST[:PORT],HOST[:PORT],HOST[:PORT]` | RedLock over 3, 5, … independent servers; `rediss+redlock://` with TLS | `redis` |
/// | `sqlite:PATH` | an SQLite file, shared by the processes of one machine | `sqlite` |
///
/// # Errors
///
/// [`ErrorKind::InvalidConfig`] if the URL is malformed, names a backend that this build does not
/// have, or an option that does not exist; [`ErrorKind::PermissionDenied`],
/// [`ErrorKind::Corrupt`] or [`ErrorKind::Unavailable`] if the backend cannot be opened.
///
/// # Cancel safety
///
/// Dropping the future leaves no hold; an empty database may have been made.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit::Result<()> {
/// let locker = lockkit::connect("memory:").await?;
/// let guard = locker.mutex("orders/42").lock().await?;
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
pub async fn connect(url: &str) -> Result<Locker> {
    connect_with(url, LockerOptions::default()).await
}

/// Opens the backend that `url` names, with these options. See [`connect`].
///
/// # Errors
///
/// As [`connect`]; [`ErrorKind::InvalidArgument`] if an option is out of the backend's range.
///
/// # Cancel safety
///
/// As [`connect`].
pub async fn connect_with(url: &str, options: LockerOptions) -> Result<Locker> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(invalid(format!(
            "a backend URL begins with a scheme and a colon, such as sqlite:locks.db; this build \
             knows {}",
            schemes()
        )));
    };
    match scheme {
        "memory" => Locker::with_options(memory(rest)?, options),
        #[cfg(feature = "redis")]
        "redis" | "rediss" | "redis+unix" | "redis+sentinel" | "rediss+sentinel"
        | "redis+cluster" | "rediss+cluster" | "redlock" | "rediss+redlock" => {
            Locker::with_backend(lockkit_redis::connect(url).await?.into(), options)
        }
        #[cfg(feature = "sqlite")]
        "sqlite" => Locker::with_options(lockkit_sql::Sqlite::connect(url).await?, options),
        _ => Err(unknown(scheme)),
    }
}

/// The backends in this build.
///
/// # Examples
///
/// ```
/// assert!(lockkit::backends().iter().any(|backend| backend.driver == "memory"));
/// ```
#[must_use]
pub fn backends() -> Vec<&'static Descriptor> {
    vec![
        Memory::descriptor(),
        #[cfg(feature = "redis")]
        lockkit_redis::Redis::descriptor(),
        #[cfg(feature = "redis")]
        lockkit_redis::Redlock::descriptor(),
        #[cfg(feature = "redis")]
        lockkit_redis::Simple::descriptor(),
        #[cfg(feature = "sqlite")]
        lockkit_sql::Sqlite::descriptor(),
    ]
}

fn schemes() -> String {
    // Not every backend has a scheme of its own: another strategy is asked for behind the `?`.
    let is_scheme = |name: &str| name == "memory" || FEATURES.iter().any(|(s, _)| *s == name);
    let backends = backends().into_iter().filter(|b| is_scheme(b.driver));
    let names: Vec<String> = backends.map(|b| format!("{}:", b.driver)).collect();
    names.join(", ")
}

fn memory(name: &str) -> Result<Memory> {
    static STORES: LazyLock<StdMutex<HashMap<String, MemoryStore>>> =
        LazyLock::new(StdMutex::default);
    if name.contains(['?', '/']) {
        return Err(
            invalid("a memory URL is `memory:` or `memory:NAME`, without options").on("memory"),
        );
    }
    if name.is_empty() {
        return Ok(Memory::new());
    }
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(stores.entry(name.to_owned()).or_default().backend())
}

fn unknown(scheme: &str) -> Error {
    let known = schemes();
    // Never echo the rest of the URL: it may hold a password. A scheme is safe only if it looks
    // like one.
    let looks_like_one = scheme.len() <= 32
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    if !looks_like_one {
        return invalid(format!(
            "this is not a backend URL; this build knows {known}"
        ));
    }
    match FEATURES.iter().find(|(name, _)| *name == scheme) {
        Some((_, feature)) => invalid(format!(
            "this build has no `{scheme}:` backend; enable the cargo feature `{feature}` (it \
             knows {known})"
        )),
        None => invalid(format!(
            "there is no `{scheme}:` backend; this build knows {known}"
        )),
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConfig, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn message(url: &str) -> String {
        let error = connect(url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{url}");
        error.to_string()
    }

    #[tokio::test]
    async fn a_bad_url_names_the_cure_and_echoes_no_password() {
        assert!(message("").await.contains("sqlite:locks.db"));
        assert!(message("locks.db").await.contains("scheme"));
        assert!(
            message("elsewhere://u:s3cr3t@h")
                .await
                .contains("no `elsewhere:` backend")
        );
        assert!(message("memory:a?b=c").await.contains("without options"));
        for url in [
            "redis://u:s3cr3t@h:notaport",
            "u s3cr3t@h:1",
            "s3cr3t@host:6379",
        ] {
            assert!(!message(url).await.contains("s3cr3t"), "{url}");
        }
    }

    #[cfg(not(feature = "sqlite"))]
    #[tokio::test]
    async fn a_backend_that_was_not_built_names_its_feature() {
        assert!(message("sqlite:x").await.contains("cargo feature `sqlite`"));
    }

    #[cfg(not(feature = "redis"))]
    #[tokio::test]
    async fn every_scheme_of_a_backend_that_was_not_built_names_its_feature() {
        for scheme in ["redis", "rediss", "redis+sentinel", "redlock"] {
            let message = message(&format!("{scheme}://u:s3cr3t@h")).await;
            assert!(message.contains("cargo feature `redis`"), "{message}");
        }
    }

    #[tokio::test]
    async fn named_memory_stores_are_shared() {
        let one = connect("memory:shared").await.unwrap();
        let other = connect("memory:shared").await.unwrap();
        let alone = connect("memory:").await.unwrap();
        let _guard = one.mutex("a").lock().await.unwrap();
        assert!(other.mutex("a").try_lock().await.unwrap().is_none());
        assert!(alone.mutex("a").try_lock().await.unwrap().is_some());
    }
}
