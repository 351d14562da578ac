//! The line that tells somebody at a terminal what is being waited for.

use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use lockkit::{Locker, Primitive, Resource, Snapshot};
use rustix::termios::tcgetwinsize;
use unicode_width::UnicodeWidthChar as _;

use crate::duration::short;
use crate::output::{self, Output};
use crate::shown::{self, held_by};

/// No line for a wait that is over before it could be read.
const FIRST: Duration = Duration::from_millis(300);
/// Between two looks at the holder.
const REFRESH: Duration = Duration::from_secs(1);
/// Carriage return, then erase to the end of the line.
const CLEAR: &str = "\r\x1b[K";

/// Keeps one line on stderr up to date until it is dropped, which clears it. Silent unless stderr
/// is a terminal and people read it.
pub(crate) async fn show(locker: &Locker, resource: &Resource, output: &Output) -> Infallible {
    if output.is_quiet() || output.is_json() || !std::io::stderr().is_terminal() {
        return std::future::pending().await;
    }
    let since = Instant::now();
    let _line = Line;
    tokio::time::sleep(FIRST).await;
    loop {
        let snapshot = locker.inspect(resource).await.ok();
        let text = describe(resource, since.elapsed(), snapshot.as_ref());
        output::raw(&format!("{CLEAR}{}", cut(&text, columns())));
        tokio::time::sleep(REFRESH).await;
    }
}

struct Line;

impl Drop for Line {
    fn drop(&mut self) {
        output::raw(CLEAR);
    }
}

fn describe(resource: &Resource, waited: Duration, snapshot: Option<&Snapshot>) -> String {
    let mut text = format!(
        "lockkit: waiting {} for \"{}\"",
        short(waited),
        resource.name()
    );
    if let Some(snapshot) = snapshot {
        if let Some(holders) = held_by(snapshot) {
            text = format!("{text}, {holders}");
        }
        if resource.primitive() == Primitive::Latch {
            return format!("{text}, {}", shown::latch(snapshot.latch));
        }
        if snapshot.waiters.len() > 1 {
            text = format!("{text}, {} in line", snapshot.waiters.len());
        }
    }
    text
}

/// The columns of the terminal that may be written to without a line break.
fn columns() -> usize {
    let width = tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if width == 0 { 79 } else { width - 1 }
}

/// As much of `text` as fits into so many columns.
fn cut(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_the_terminal_ends() {
        assert_eq!(cut("abcdef", 4), "abcd");
        assert_eq!(cut("abc", 4), "abc");
        assert_eq!(cut("日本語", 5), "日本", "two columns each");
        assert_eq!(cut("", 0), "");
    }
}
