//! The scripts, as they are sent.

use crate::script::Script;

macro_rules! lua {
    ($flags:literal, $file:literal) => {
        Script::new(
            $flags,
            &[include_str!(concat!("../lua/redlock_", $file, ".lua"))],
        )
    };
}

/// All scripts of one backend.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) propose: Script,
    pub(crate) confirm: Script,
    pub(crate) renew: Script,
    pub(crate) repair: Script,
    pub(crate) extend: Script,
    pub(crate) release: Script,
    pub(crate) request: Script,
    pub(crate) inspect: Script,
    pub(crate) join: Script,
    pub(crate) counters: Script,
    pub(crate) adopt: Script,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            // Something new: refused while the server is out of memory. All others go on then.
            propose: lua!("", "propose"),
            confirm: lua!("allow-oom", "confirm"),
            renew: lua!("allow-oom", "renew"),
            repair: lua!("allow-oom", "repair"),
            extend: lua!("allow-oom", "extend"),
            release: lua!("allow-oom", "release"),
            request: lua!("allow-oom", "request"),
            inspect: lua!("allow-oom", "inspect"),
            join: lua!("allow-oom", "join"),
            counters: lua!("allow-oom", "counters"),
            adopt: lua!("allow-oom", "adopt"),
        }
    }
}
