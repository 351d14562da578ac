//! The scripts, as they are sent.

use crate::script::Script;

macro_rules! lua {
    ($file:literal) => {
        include_str!(concat!("lua/", $file, ".lua"))
    };
}

/// All scripts of one backend.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) mutex_acquire: Script,
    pub(crate) mutex_release: Script,
    pub(crate) mutex_renew: Script,
    pub(crate) mutex_renew_places: Script,
    pub(crate) mutex_extend: Script,
    pub(crate) mutex_request: Script,
}

impl Scripts {
    /// The scripts for one server, or for a cluster.
    pub(crate) fn new(sharded: bool) -> Self {
        let script = |flags, parts: &[&str]| {
            let script = Script::new(flags, parts);
            if sharded { script.sharded() } else { script }
        };
        // What frees something, or keeps it, works when the server is out of memory as well.
        let keep = "allow-oom";
        Self {
            mutex_acquire: script(
                "",
                &[
                    lua!("mutex_acquire"),
                    lua!("mutex_hand_over"),
                    lua!("mutex_line"),
                ],
            ),
            mutex_release: script(
                keep,
                &[
                    lua!("mutex_release"),
                    lua!("mutex_hand_over"),
                    lua!("mutex_pass_on"),
                ],
            ),
            mutex_renew: script(keep, &[lua!("mutex_renew")]),
            mutex_renew_places: script(keep, &[lua!("mutex_renew_places")]),
            mutex_extend: script(keep, &[lua!("mutex_extend")]),
            mutex_request: script(keep, &[lua!("mutex_request")]),
        }
    }
}
