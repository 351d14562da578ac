//! `lockkit ping`, `backends` and `completions`.

use std::time::Instant;

use clap::CommandFactory as _;
use clap_complete::Shell;
use lockkit::Descriptor;
use serde_json::{Value, json};

use crate::args::{Args, Global};
use crate::duration::{millis, short};
use crate::exit::{self, Failure};
use crate::open;
use crate::output::{self, Output};
use crate::table;

/// What a backend says of itself: a name and a value.
type Fact = (&'static str, String);

/// The fact that those about this server come after.
const SERVER: &str = "server";

/// Connects, and tells how long an answer takes and what the backend says of itself.
pub(crate) async fn ping(global: &Global, output: &Output) -> Result<u8, Failure> {
    let url = open::url(global)?;
    open::with_locker(&url, output, async |locker| {
        let asked = Instant::now();
        let facts = locker.probe().await?;
        let micros = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
        let driver = locker.descriptor().driver;
        let text = if output.is_json() {
            ping_json(driver, micros, &facts)
        } else {
            ping_text(driver, micros, &facts)
        };
        output::listing(&text)?;
        Ok(exit::OK)
    })
    .await
}

/// A paragraph for what is about all servers, and one for each of them.
fn ping_text(driver: &str, micros: u64, facts: &[Fact]) -> String {
    let row = |key: &str, value: &str| [key.to_owned(), value.to_owned()];
    let mut rows = vec![
        row("backend", driver),
        row("latency", &format!("{micros} µs")),
    ];
    let mut indent = "";
    for (key, value) in facts {
        if *key == SERVER {
            rows.extend([row("", ""), row(key, value)]);
            indent = "  ";
        } else {
            rows.push(row(&format!("{indent}{key}"), value));
        }
    }
    table::columns(&rows)
}

fn ping_json(driver: &str, micros: u64, facts: &[Fact]) -> String {
    let object = |facts: &[Fact]| {
        let fields = facts.iter();
        let fields = fields.map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str())));
        Value::Object(fields.collect())
    };
    let mut parts = facts.chunk_by(|_, next| next.0 != SERVER).peekable();
    let about_all = parts.next_if(|part| part[0].0 != SERVER);
    let ping = json!({
        "backend": driver,
        "latency_us": micros,
        "facts": object(about_all.unwrap_or_default()),
        "servers": parts.map(object).collect::<Value>(),
    });
    format!("{ping}\n")
}

/// Lists the backends of this binary, from their own descriptions.
pub(crate) fn backends(output: &Output) -> Result<u8, Failure> {
    let backends = lockkit::backends();
    let text = if output.is_json() {
        let list: Value = backends.into_iter().map(json_of).collect();
        format!("{list}\n")
    } else {
        let paragraphs: Vec<_> = backends.into_iter().map(paragraph).collect();
        paragraphs.join("\n")
    };
    output::listing(&text)?;
    Ok(exit::OK)
}

fn paragraph(backend: &Descriptor) -> String {
    let (least, most) = (short(*backend.ttl.start()), short(*backend.ttl.end()));
    let rows = [
        ["  guarantee", &backend.guarantee.to_string()],
        ["  fencing tokens", &backend.fence.to_string()],
        ["  offers", &primitives(backend).join(", ")],
        [
            "  strict order",
            if backend.fair {
                "yes; a mutex with --fair, the others always"
            } else {
                "no"
            },
        ],
        [
            "  who waits",
            if backend.line {
                "stands in line, which `lockkit ls` shows"
            } else {
                "looks again and again; `lockkit ls` does not show it"
            },
        ],
        [
            "  request-release",
            if backend.revocation { "yes" } else { "no" },
        ],
        [
            "  several names",
            if backend.at_once {
                "in one request"
            } else {
                "one after the other"
            },
        ],
        ["  lease", &format!("{least} to {most}")],
        ["  wake-up", backend.wake_up],
        ["  after a crash", backend.after_crash],
    ];
    let rows = rows.map(|row| row.map(String::from));
    format!("{}:\n{}", backend.driver, table::columns(&rows))
}

fn json_of(backend: &Descriptor) -> Value {
    json!({
        "driver": backend.driver,
        "guarantee": backend.guarantee.to_string(),
        "fence": backend.fence.to_string(),
        "primitives": primitives(backend),
        "fair": backend.fair,
        "line": backend.line,
        "revocation": backend.revocation,
        "at_once": backend.at_once,
        "min_ttl_ms": millis(*backend.ttl.start()),
        "max_ttl_ms": millis(*backend.ttl.end()),
        "wake_up": backend.wake_up,
        "after_crash": backend.after_crash,
    })
}

fn primitives(backend: &Descriptor) -> Vec<&'static str> {
    backend
        .primitives
        .iter()
        .map(|primitive| primitive.as_str())
        .collect()
}

/// Prints a completion script.
pub(crate) fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "lockkit", &mut script);
    output::listing(&String::from_utf8_lossy(&script))?;
    Ok(exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_stand_under_their_server() {
        let facts = [
            ("votes", "1 of 2"),
            ("server", "a:1"),
            ("version", "7.0"),
            ("server", "b:2"),
            ("state", "down"),
        ];
        let facts = facts.map(|(key, value)| (key, value.to_owned()));
        let text = "\
backend    redlock
latency    5 µs
votes      1 of 2

server     a:1
  version  7.0

server     b:2
  state    down
";
        assert_eq!(ping_text("redlock", 5, &facts), text);
        let object: Value = serde_json::from_str(&ping_json("redlock", 5, &facts)).unwrap();
        let servers = json!([
            { "server": "a:1", "version": "7.0" },
            { "server": "b:2", "state": "down" },
        ]);
        assert_eq!(object["facts"], json!({ "votes": "1 of 2" }));
        assert_eq!(object["servers"], servers);
        let object: Value = serde_json::from_str(&ping_json("sqlite", 5, &facts[..1])).unwrap();
        assert_eq!(object["servers"], json!([]));
    }
}
