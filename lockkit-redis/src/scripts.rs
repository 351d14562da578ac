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
    pub(crate) mutex_again: Script,
    pub(crate) mutex_take: Script,
    pub(crate) mutex_release: Script,
    pub(crate) mutex_leave: Script,
    pub(crate) mutex_renew: Script,
    pub(crate) mutex_renew_places: Script,
    pub(crate) mutex_extend: Script,
    pub(crate) mutex_request: Script,
    pub(crate) attempt: Script,
    pub(crate) attempt_again: Script,
    pub(crate) release: Script,
    pub(crate) renew: Script,
    pub(crate) extend: Script,
    pub(crate) convert: Script,
    pub(crate) request: Script,
    pub(crate) set_size: Script,
    pub(crate) latch_attempt: Script,
    pub(crate) latch_again: Script,
    pub(crate) latch_set: Script,
    pub(crate) latch_count: Script,
    pub(crate) inspect: Script,
    pub(crate) together: Script,
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
        let mutex = [
            lua!("mutex_acquire"),
            lua!("mutex_hand_over"),
            lua!("mutex_line"),
        ];
        let (hall, turn) = (lua!("hall"), lua!("turn"));
        Self {
            mutex_acquire: script("", &mutex),
            mutex_again: script(keep, &mutex),
            mutex_take: script("", &[lua!("mutex_take")]),
            mutex_leave: script(keep, &[lua!("mutex_leave")]),
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
            attempt: script("", &[hall, turn, lua!("attempt")]),
            attempt_again: script(keep, &[hall, turn, lua!("attempt")]),
            release: script(keep, &[hall, turn, lua!("release")]),
            renew: script(keep, &[hall, lua!("renew")]),
            extend: script(keep, &[hall, lua!("extend")]),
            convert: script(keep, &[hall, turn, lua!("convert")]),
            request: script(keep, &[hall, lua!("request")]),
            set_size: script(keep, &[hall, turn, lua!("set_size")]),
            latch_attempt: script("", &[hall, lua!("latch_attempt")]),
            latch_again: script(keep, &[hall, lua!("latch_attempt")]),
            latch_set: script(keep, &[lua!("latch_set")]),
            latch_count: script(keep, &[hall, lua!("latch_count")]),
            inspect: script("no-writes", &[hall, lua!("inspect")]),
            together: script("", &[hall, turn, lua!("together")]),
        }
    }
}
