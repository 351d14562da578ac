//! A Lua script: its text and its name on the server.

use std::fmt;

use sha1_smol::Sha1;

/// A script. It is called by the SHA-1 of its text, and sent only to a server that lacks it.
pub(crate) struct Script {
    /// For servers that know script flags: 7.0 and newer.
    flagged: Text,
    /// For older ones.
    plain: Text,
}

/// One text and its name.
pub(crate) struct Text {
    pub(crate) source: String,
    pub(crate) sha: String,
}

impl Text {
    fn new(source: String) -> Self {
        let sha = Sha1::from(&source).digest().to_string();
        Self { source, sha }
    }
}

impl Script {
    /// A script of several parts, with the flags of its first line.
    pub(crate) fn new(flags: &str, parts: &[&str]) -> Self {
        let plain = parts.concat();
        let flagged = match flags {
            // Without flags a server refuses every write while it is out of memory, as it
            // should for who wants something new; and so does an old one.
            "" => plain.clone(),
            flags => format!("#!lua flags={flags}\n{plain}"),
        };
        Self {
            flagged: Text::new(flagged),
            plain: Text::new(plain),
        }
    }

    /// The same for a cluster, where messages go by slot.
    #[must_use]
    pub(crate) fn sharded(&self) -> Self {
        let sharded = |text: &Text| Text::new(text.source.replace("'PUBLISH'", "'SPUBLISH'"));
        Self {
            flagged: sharded(&self.flagged),
            plain: sharded(&self.plain),
        }
    }

    /// The text for a server.
    pub(crate) const fn text(&self, knows_flags: bool) -> &Text {
        if knows_flags {
            &self.flagged
        } else {
            &self.plain
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Script").field(&self.flagged.sha).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_named_by_what_is_sent() {
        let script = Script::new("allow-oom", &["redis.call('PUBLISH',", " 'a', 'b')"]);
        let text = script.text(true);
        assert_eq!(text.sha, Sha1::from(&text.source).digest().to_string());
        assert!(text.source.starts_with("#!lua flags=allow-oom\nredis.call"));
        assert!(!script.text(false).source.contains("#!"));
        assert!(script.sharded().text(true).source.contains("'SPUBLISH'"));
    }
}
