//! What the kernel tells: that our bell was rung, that somebody died, that the file went away.
//!
//! Each process listens to changes of the times of its own sessions' files: touching one rings its
//! owner and nobody else. And it listens for the close of the files of those whom it waits behind:
//! the kernel closes the files of a process that dies, however it dies.
//!
//! Ending to listen takes the kernel tens of milliseconds, which a process that takes a lock for a
//! moment would spend at its exit. So listening begins with the first wait, or once a session has
//! lived for a while.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use lockkit_core::AttemptId;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::config::WakeUp;
use super::ear::{Ear, Sound};
use super::files::SessionId;
use super::shared::locked;

/// Who listens to what.
#[derive(Debug)]
pub(super) struct Bell {
    ear: OnceLock<Option<Arc<Ear>>>,
    /// Not everything that should be heard is, so it has to be looked for.
    is_deaf: AtomicBool,
    watches: Mutex<Watches>,
    /// Tells the task that there is something new to do.
    pub(super) stirred: Arc<Notify>,
    task: OnceLock<AbortHandle>,
}

#[derive(Debug, Default)]
struct Watches {
    /// Files of our own sessions that we do not listen to yet.
    unheard: Vec<PathBuf>,
    database: Option<i32>,
    own: HashSet<i32>,
    peers: HashMap<SessionId, Peer>,
    by_watch: HashMap<i32, SessionId>,
    following: HashMap<AttemptId, Vec<SessionId>>,
}

#[derive(Debug, Default)]
struct Peer {
    watch: Option<i32>,
    followers: Vec<AttemptId>,
}

/// What the kernel says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// Something happened to what is watched, or the watch has ended.
    Sound { watch: i32, ended: bool },
    /// So much happened that some of it was dropped.
    Overflow,
}

/// What was heard.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Our own bell.
    pub(super) rung: bool,
    /// The database may have been moved or removed.
    pub(super) moved: bool,
    /// So much that some of it was dropped.
    pub(super) overflow: bool,
    /// Sessions that nobody has open any more, and those who follow them.
    pub(super) closed: Vec<(SessionId, Vec<AttemptId>)>,
}

impl Bell {
    pub(super) fn new(wanted: WakeUp) -> Self {
        let ear = OnceLock::new();
        if wanted == WakeUp::Poll {
            let _ = ear.set(None);
        }
        Self {
            ear,
            is_deaf: AtomicBool::new(wanted == WakeUp::Poll),
            watches: Mutex::default(),
            stirred: Arc::new(Notify::new()),
            task: OnceLock::new(),
        }
    }

    pub(super) fn is_deaf(&self) -> bool {
        self.is_deaf.load(Ordering::Acquire)
    }

    pub(super) fn kind(&self) -> &'static str {
        if self.is_deaf() { "poll" } else { "inotify" }
    }

    /// The ear, if there is one by now.
    pub(super) fn ear(&self) -> Option<Arc<Ear>> {
        self.ear.get()?.clone()
    }

    /// The task that listens; it ends with this.
    pub(super) fn served_by(&self, task: AbortHandle) {
        let _ = self.task.set(task);
    }

    pub(super) fn silence(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    fn add(&self, path: &Path, sound: Sound) -> io::Result<i32> {
        let ear = self
            .ear
            .get_or_init(|| Ear::open().ok().map(Arc::new))
            .as_ref();
        let ear = ear.ok_or(io::ErrorKind::Unsupported)?;
        ear.listen(path, sound)
    }

    fn lose_hearing(&self) {
        self.is_deaf.store(true, Ordering::Release);
        self.stirred.notify_one();
    }

    /// Notes a session of ours, to be listened to from the next [`attend`](Self::attend) on.
    pub(super) fn expect(&self, session: &Path) {
        if !self.is_deaf() {
            locked(&self.watches).unheard.push(session.to_owned());
            self.stirred.notify_one();
        }
    }

    /// Whether a session of ours is not listened to yet.
    pub(super) fn is_inattentive(&self) -> bool {
        !locked(&self.watches).unheard.is_empty()
    }

    /// Begins to listen to the bells of our sessions; returns whether that is new, so that there
    /// may be something that was not heard.
    pub(super) fn attend(&self, database: &Path) -> bool {
        let mut watches = locked(&self.watches);
        let unheard = std::mem::take(&mut watches.unheard);
        for session in &unheard {
            match self.add(session, Sound::Ring) {
                Ok(own) => {
                    watches.own.insert(own);
                }
                // It has ended meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => self.lose_hearing(),
            }
        }
        if !unheard.is_empty() {
            watches.database = self.add(database, Sound::Move).ok();
            // Not before there is an ear, or the task would go back to sleep without it.
            self.stirred.notify_one();
        }
        !unheard.is_empty()
    }

    /// Listens for the end of a session of another process. Returns whether it is too late for
    /// that: the file is not there, and was not known to be missing before.
    pub(super) fn follow(&self, path: &Path, session: SessionId, attempt: AttemptId) -> bool {
        let mut watches = locked(&self.watches);
        let following = watches.following.entry(attempt).or_default();
        if following.contains(&session) {
            return false;
        }
        following.push(session);
        let is_new = !watches.peers.contains_key(&session);
        watches
            .peers
            .entry(session)
            .or_default()
            .followers
            .push(attempt);
        if !is_new {
            return false;
        }
        match self.add(path, Sound::Close) {
            Ok(watch) => {
                watches.by_watch.insert(watch, session);
                watches.peers.entry(session).or_default().watch = Some(watch);
                false
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(_) => {
                self.lose_hearing();
                false
            }
        }
    }

    pub(super) fn unfollow(&self, attempt: AttemptId) {
        self.follow_only(&[], attempt);
    }

    /// Ends to listen for the end of all sessions but these.
    pub(super) fn follow_only(&self, sessions: &[SessionId], attempt: AttemptId) {
        let mut watches = locked(&self.watches);
        let Some(following) = watches.following.get_mut(&attempt) else {
            return;
        };
        let left: Vec<SessionId> = following
            .extract_if(.., |session| !sessions.contains(session))
            .collect();
        if following.is_empty() {
            watches.following.remove(&attempt);
        }
        for session in left {
            self.leave(&mut watches, session, attempt);
        }
    }

    fn leave(&self, watches: &mut Watches, session: SessionId, attempt: AttemptId) {
        let Some(peer) = watches.peers.get_mut(&session) else {
            return;
        };
        peer.followers.retain(|follower| *follower != attempt);
        if !peer.followers.is_empty() {
            return;
        }
        let watch = peer.watch;
        watches.peers.remove(&session);
        if let (Some(watch), Some(ear)) = (watch, self.ear()) {
            watches.by_watch.remove(&watch);
            ear.ignore(watch);
        }
    }

    /// Everything that there is to hear now.
    pub(super) fn hear(&self, ear: &Ear) -> Heard {
        let mut heard = Heard::default();
        let mut watches = locked(&self.watches);
        ear.hear(|event| match event {
            Event::Overflow => heard.overflow = true,
            Event::Sound { watch, ended } => watches.sort(watch, ended, &mut heard),
        });
        heard
    }
}

impl Watches {
    fn sort(&mut self, watch: i32, ended: bool, heard: &mut Heard) {
        if self.database == Some(watch) {
            heard.moved = true;
        } else if self.own.contains(&watch) {
            heard.rung = true;
        } else if let Some(session) = self.by_watch.get(&watch).copied() {
            // Whoever comes back follows anew.
            let followers = self.peers.remove(&session).unwrap_or_default().followers;
            for follower in &followers {
                if let Some(following) = self.following.get_mut(follower) {
                    following.retain(|other| *other != session);
                }
            }
            if !followers.is_empty() {
                heard.closed.push((session, followers));
            }
        }
        if ended {
            self.own.remove(&watch);
            self.by_watch.remove(&watch);
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.silence();
    }
}
