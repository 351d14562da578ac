//! Which node of a cluster has which slots.

use std::ops::RangeInclusive;

use super::Reply;

/// The master of a range of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) slots: RangeInclusive<u16>,
    /// `None` for the node that was asked, which does not know its own name.
    pub(super) host: Option<String>,
    pub(super) port: u16,
}

/// Reads the answer to `CLUSTER SLOTS`: `[first, last, [host, port, …] of the master, …]` each.
pub(super) fn ranges(reply: &Reply) -> Option<Vec<Range>> {
    reply.as_array()?.iter().map(range).collect()
}

fn range(reply: &Reply) -> Option<Range> {
    let [first, last, master, ..] = reply.as_array()? else {
        return None;
    };
    let [host, port, ..] = master.as_array()? else {
        return None;
    };
    let number = |reply: &Reply| reply.as_int().and_then(|number| u16::try_from(number).ok());
    let host = host.as_text().filter(|host| !matches!(*host, "" | "?"));
    Some(Range {
        slots: number(first)?..=number(last)?,
        host: host.map(str::to_owned),
        port: number(port)?,
    })
}

/// Where a node sends somebody who asked the wrong one: `SLOT HOST:PORT`.
pub(super) fn redirection(detail: &str) -> Option<(&str, u16)> {
    let (host, port) = detail.split(' ').nth(1)?.rsplit_once(':')?;
    Some((host, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_cluster_says_of_itself() {
        let text = |text: &str| Reply::Bytes(text.into());
        let node = |host: &str, port| {
            Reply::Array(vec![
                text(host),
                Reply::Int(port),
                text("id"),
                Reply::Array(vec![]),
            ])
        };
        let reply = Reply::Array(vec![
            Reply::Array(vec![
                Reply::Int(0),
                Reply::Int(5460),
                node("h1", 1),
                node("h2", 2),
            ]),
            Reply::Array(vec![Reply::Int(5461), Reply::Int(16383), node("", 3)]),
        ]);
        let ranges = ranges(&reply).unwrap();
        assert_eq!(ranges[0].host.as_deref(), Some("h1"));
        assert_eq!((ranges[1].slots.clone(), ranges[1].port), (5461..=16383, 3));
        assert_eq!(ranges[1].host, None, "the one that was asked");
        assert_eq!(redirection("3999 ::1:6381"), Some(("::1", 6381)));
        assert_eq!(redirection("3999"), None);
    }
}
