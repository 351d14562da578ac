//! What an actor writes down: one line for each event.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use lockkit_core::{Instant, Mode, Pick};

use crate::{Failure, Outcome};

/// One event. Times are read so that they never claim more than what was: before a request is
/// sent, after its answer has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A hold was given.
    Grant(Grant),
    /// A hold was still believed in at this moment.
    Held { hold: u64, at: Instant },
    /// A participant is about to count a latch down.
    Steps { latch: u32, who: u32, at: Instant },
    /// It has, and was told how many are left.
    Stepped {
        latch: u32,
        who: u32,
        asked: Instant,
        answered: Instant,
        left: u32,
    },
    /// A wait for a latch has ended well, or in vain.
    Waited {
        latch: u32,
        asked: Instant,
        answered: Instant,
        passed: bool,
    },
    /// An operation was begun.
    Began,
    /// Its future was dropped before it was done.
    Dropped,
    /// The actor itself saw something that must not be.
    Wrong(String),
}

/// A hold that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// Unique in the whole storm.
    pub(super) hold: u64,
    pub(super) name: u32,
    pub(super) mode: Mode,
    pub(super) fence: u64,
    pub(super) asked: Instant,
    pub(super) from: Instant,
}

/// Where an actor writes: into memory, or to a file that outlives its process.
#[derive(Debug)]
pub(super) enum Log {
    Memory(Mutex<Vec<Record>>),
    File(Mutex<File>),
}

impl Log {
    pub(super) fn in_memory() -> Self {
        Self::Memory(Mutex::default())
    }

    pub(super) fn to(path: &Path) -> Outcome<Self> {
        Ok(Self::File(Mutex::new(File::create(path)?)))
    }

    pub(super) fn write(&self, record: Record) {
        match self {
            Self::Memory(records) => locked(records).push(record),
            Self::File(file) => {
                // One write, so that a kill leaves whole lines.
                let line = format!("{}\n", encode(&record));
                let written = locked(file).write_all(line.as_bytes());
                // A record that is not kept could hide a violation.
                assert!(written.is_ok(), "cannot write the record: {written:?}");
            }
        }
    }

    /// What was written into memory.
    pub(super) fn take(&self) -> Vec<Record> {
        match self {
            Self::Memory(records) => std::mem::take(&mut locked(records)),
            Self::File(_) => Vec::new(),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads what a process has written. A last line without an end was cut by a kill.
pub(super) fn read(path: &Path) -> Outcome<Vec<Record>> {
    let text = std::fs::read_to_string(path)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(decode).collect()
}

fn encode(record: &Record) -> String {
    match record {
        Record::Grant(grant) => {
            let Grant {
                hold, name, fence, ..
            } = grant;
            let mode = encode_mode(grant.mode);
            let (asked, from) = (grant.asked.as_nanos(), grant.from.as_nanos());
            format!("grant {hold} {name} {mode} {fence} {asked} {from}")
        }
        Record::Held { hold, at } => format!("held {hold} {}", at.as_nanos()),
        Record::Steps { latch, who, at } => format!("steps {latch} {who} {}", at.as_nanos()),
        Record::Stepped {
            latch,
            who,
            asked,
            answered,
            left,
        } => {
            let (asked, answered) = (asked.as_nanos(), answered.as_nanos());
            format!("stepped {latch} {who} {asked} {answered} {left}")
        }
        Record::Waited {
            latch,
            asked,
            answered,
            passed,
        } => {
            let (asked, answered) = (asked.as_nanos(), answered.as_nanos());
            format!("waited {latch} {asked} {answered} {passed}")
        }
        Record::Began => "began".into(),
        Record::Dropped => "dropped".into(),
        Record::Wrong(what) => format!("wrong {}", what.replace('\n', " ")),
    }
}

fn decode(line: &str) -> Outcome<Record> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut words = rest.split(' ');
    let mut number = || {
        words
            .next()
            .and_then(|word| u64::from_str(word).ok())
            .ok_or_else(|| Failure::new(format!("not a record: {line}")))
    };
    Ok(match word {
        "grant" => {
            let (hold, name) = (number()?, number()?);
            let mode = decode_mode(rest.split(' ').nth(2).unwrap_or_default())?;
            let mut rest = rest.split(' ').skip(3).map(u64::from_str);
            let mut number = || match rest.next() {
                Some(Ok(number)) => Ok(number),
                _ => Err(Failure::new(format!("not a record: {line}"))),
            };
            Record::Grant(Grant {
                hold,
                name: u32::try_from(name)?,
                mode,
                fence: number()?,
                asked: Instant::from_nanos(number()?),
                from: Instant::from_nanos(number()?),
            })
        }
        "held" => Record::Held {
            hold: number()?,
            at: Instant::from_nanos(number()?),
        },
        "steps" => Record::Steps {
            latch: u32::try_from(number()?)?,
            who: u32::try_from(number()?)?,
            at: Instant::from_nanos(number()?),
        },
        "stepped" => Record::Stepped {
            latch: u32::try_from(number()?)?,
            who: u32::try_from(number()?)?,
            asked: Instant::from_nanos(number()?),
            answered: Instant::from_nanos(number()?),
            left: u32::try_from(number()?)?,
        },
        "waited" => Record::Waited {
            latch: u32::try_from(number()?)?,
            asked: Instant::from_nanos(number()?),
            answered: Instant::from_nanos(number()?),
            passed: rest.ends_with("true"),
        },
        "began" => Record::Began,
        "dropped" => Record::Dropped,
        "wrong" => Record::Wrong(rest.into()),
        _ => return Err(Failure::new(format!("not a record: {line}"))),
    })
}

fn encode_mode(mode: Mode) -> String {
    match mode {
        Mode::Shared => "s".into(),
        Mode::Permits { count, limit } => format!("p{count}/{limit}"),
        Mode::Segment {
            pick: Pick::Only(segment),
            of,
        } => format!("g{segment}/{of}"),
        _ => "x".into(),
    }
}

fn decode_mode(word: &str) -> Outcome<Mode> {
    let numbers = || -> Outcome<(u32, u32)> {
        let (a, b) = word[1..]
            .split_once('/')
            .ok_or_else(|| Failure::new(format!("not a mode: {word}")))?;
        Ok((a.parse()?, b.parse()?))
    };
    Ok(match word.chars().next() {
        Some('x') => Mode::Exclusive,
        Some('s') => Mode::Shared,
        Some('p') => {
            let (count, limit) = numbers()?;
            Mode::Permits { count, limit }
        }
        Some('g') => {
            let (segment, of) = numbers()?;
            Mode::Segment {
                pick: Pick::Only(segment),
                of,
            }
        }
        _ => return Err(Failure::new(format!("not a mode: {word}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let at = Instant::from_nanos;
        let grant = |mode| {
            Record::Grant(Grant {
                hold: 7,
                name: 3,
                mode,
                fence: 9,
                asked: at(1),
                from: at(2),
            })
        };
        for record in [
            grant(Mode::Exclusive),
            grant(Mode::Shared),
            grant(Mode::Permits { count: 2, limit: 5 }),
            grant(Mode::Segment {
                pick: Pick::Only(3),
                of: 4,
            }),
            Record::Held { hold: 1, at: at(5) },
            Record::Steps {
                latch: 1,
                who: 2,
                at: at(3),
            },
            Record::Stepped {
                latch: 1,
                who: 2,
                asked: at(3),
                answered: at(4),
                left: 5,
            },
            Record::Waited {
                latch: 1,
                asked: at(2),
                answered: at(3),
                passed: true,
            },
            Record::Began,
            Record::Dropped,
            Record::Wrong("it is so".into()),
        ] {
            assert_eq!(decode(&encode(&record)).unwrap(), record);
        }
        assert!(decode("grant 1 2 q 3 4 5").is_err());
        assert!(decode("nonsense").is_err());
    }
}
