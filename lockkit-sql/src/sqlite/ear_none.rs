//! No inotify on this system: everything is looked for.

use std::io;
use std::path::Path;

use super::bell::Event;

#[derive(Clone, Copy, Debug)]
pub(super) enum Sound {
    Ring,
    Close,
    Move,
}

#[derive(Debug)]
pub(super) enum Ear {}

impl Ear {
    pub(super) fn open() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn listen(&self, _: &Path, _: Sound) -> io::Result<i32> {
        match *self {}
    }

    pub(super) fn ignore(&self, _: i32) {
        match *self {}
    }

    pub(super) async fn prick(&self) {
        match *self {}
    }

    pub(super) fn hear(&self, _: impl FnMut(Event)) {
        match *self {}
    }
}
