//! The kernel's voice: inotify.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::bell::Event;

/// What to listen for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sound {
    /// A file's times change.
    Ring,
    /// The last process that had a file open for writing closes it, or dies.
    Close,
    /// A file is moved or removed.
    Move,
}

/// One inotify instance.
#[derive(Debug)]
pub(super) struct Ear(AsyncFd<OwnedFd>);

impl Ear {
    #[allow(
        deprecated,
        reason = "its successor is unsafe to call, for types that could change their descriptor; \
                  an OwnedFd cannot"
    )]
    pub(super) fn open() -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self(AsyncFd::with_interest(fd, Interest::READABLE)?))
    }

    /// Listens to a file. Listening to one file twice is one watch, for the later sound.
    pub(super) fn listen(&self, path: &Path, sound: Sound) -> io::Result<i32> {
        let flags = match sound {
            Sound::Ring => WatchFlags::ATTRIB,
            Sound::Close => WatchFlags::CLOSE_WRITE,
            Sound::Move => WatchFlags::ATTRIB | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF,
        };
        Ok(inotify::add_watch(self.0.get_ref(), path, flags)?)
    }

    pub(super) fn ignore(&self, watch: i32) {
        // The kernel may have removed it together with the file.
        let _ = inotify::remove_watch(self.0.get_ref(), watch);
    }

    /// Returns when there is something to hear.
    pub(super) async fn prick(&self) {
        match self.0.readable().await {
            Ok(mut ready) => ready.clear_ready(),
            // The runtime shuts down.
            Err(_) => std::future::pending().await,
        }
    }

    /// Everything that there is to hear now.
    pub(super) fn hear(&self, mut each: impl FnMut(Event)) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(self.0.get_ref(), &mut buffer);
        loop {
            match events.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                    each(Event::Overflow);
                }
                Ok(event) => each(Event::Sound {
                    watch: event.wd(),
                    ended: event.events().contains(ReadFlags::IGNORED),
                }),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}
