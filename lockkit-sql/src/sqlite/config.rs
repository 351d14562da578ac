//! The URL: `sqlite:PATH[?create=…&busy_timeout=…&wakeup=…]`.

use std::path::PathBuf;
use std::time::Duration;

use lockkit_core::{Error, ErrorKind, Result};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Deserializer, de};

use super::descriptor::DRIVER;

/// How this process learns that it is its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeUp {
    /// The kernel tells, where it can.
    Inotify,
    /// By looking, every 5 to 50 ms while anyone waits.
    Poll,
}

/// A URL, read.
#[derive(Clone, Debug)]
pub(super) struct Config {
    /// The database, as an absolute path.
    pub(super) path: PathBuf,
    pub(super) options: Options,
}

/// What may stand behind the `?`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// Whether to make a missing file.
    #[serde(deserialize_with = "create")]
    pub(super) create: bool,
    /// How long one request waits for other writers.
    #[serde(deserialize_with = "busy_timeout")]
    pub(super) busy_timeout: Duration,
    #[serde(deserialize_with = "wakeup")]
    pub(super) wakeup: WakeUp,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create: true,
            busy_timeout: Duration::from_secs(5),
            wakeup: WakeUp::Inotify,
        }
    }
}

impl Config {
    /// Reads a URL; touches no file.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let Some(rest) = url.strip_prefix("sqlite:") else {
            return Err(invalid("not an SQLite URL; write sqlite:PATH"));
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        // `sqlite:///abs` and `sqlite://rel`, as other programs write it.
        let path = path.strip_prefix("//").unwrap_or(path);
        let path = percent_decode_str(path)
            .decode_utf8()
            .map_err(|_| invalid("the path is not UTF-8 once decoded; write it as it is"))?;
        if path.is_empty() {
            return Err(invalid("the path is missing; write sqlite:PATH"));
        }
        if path == ":memory:" {
            return Err(invalid(
                "a database in memory is not shared with any process; give a file, or use memory:",
            ));
        }
        if path == "~" || path.starts_with("~/") {
            return Err(invalid(
                "`~` means nothing inside a URL; write the home directory in full",
            )
            .with("path", path));
        }
        let options = serde_urlencoded::from_str(query)
            .map_err(|error| invalid(format!("in the URL behind `?`: {error}")))?;
        let path = std::path::absolute(&*path).map_err(|error| {
            invalid("a relative path, and no working directory; write it in full").because(error)
        })?;
        Ok(Self { path, options })
    }
}

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConfig, message).on(DRIVER)
}

fn create<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    let text = String::deserialize(value)?;
    text.parse()
        .map_err(|_| de::Error::custom(format!("create is true or false, not `{text}`")))
}

fn busy_timeout<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(value)?;
    humantime::parse_duration(&text)
        .ok()
        .filter(|timeout| (Duration::from_millis(1)..=Duration::from_secs(600)).contains(timeout))
        .ok_or_else(|| {
            de::Error::custom(format!(
                "busy_timeout is a time of 1ms to 10m, such as 5s, not `{text}`"
            ))
        })
}

fn wakeup<'de, D: Deserializer<'de>>(value: D) -> Result<WakeUp, D::Error> {
    match String::deserialize(value)?.as_str() {
        "inotify" => Ok(WakeUp::Inotify),
        "poll" => Ok(WakeUp::Poll),
        text => Err(de::Error::custom(format!(
            "wakeup is inotify or poll, not `{text}`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_paths_and_options() {
        let config = Config::parse("sqlite:/a%20b/c.db?create=false&busy_timeout=250ms").unwrap();
        assert_eq!(config.path, PathBuf::from("/a b/c.db"));
        assert!(!config.options.create);
        assert_eq!(config.options.busy_timeout, Duration::from_millis(250));
        assert_eq!(config.options.wakeup, WakeUp::Inotify);
        assert_eq!(
            Config::parse("sqlite:///a/b").unwrap().path,
            PathBuf::from("/a/b")
        );
        assert!(
            Config::parse("sqlite:rel.db?wakeup=poll")
                .unwrap()
                .path
                .is_absolute()
        );
        assert_eq!(
            Config::parse("sqlite:/50%.db").unwrap().path,
            PathBuf::from("/50%.db")
        );
    }

    #[test]
    fn bad_urls_name_the_field_and_the_cure() {
        for (url, wanted) in [
            ("postgres://x", "write sqlite:PATH"),
            ("sqlite:", "write sqlite:PATH"),
            ("sqlite:?create=true", "write sqlite:PATH"),
            ("sqlite::memory:", "use memory:"),
            ("sqlite:~/x.db", "in full"),
            ("sqlite:/x?craete=true", "expected one of `create`"),
            (
                "sqlite:/x?create=maybe",
                "create is true or false, not `maybe`",
            ),
            ("sqlite:/x?busy_timeout=5", "such as 5s, not `5`"),
            ("sqlite:/x?busy_timeout=99h", "1ms to 10m"),
            ("sqlite:/x?wakeup=prayer", "inotify or poll"),
        ] {
            let error = Config::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{url}");
            assert!(error.to_string().contains(wanted), "{url}: {error}");
        }
    }
}
