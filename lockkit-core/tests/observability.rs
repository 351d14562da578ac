//! What operators are told: every metric and record that the documentation lists.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lockkit_core::{Locker, LockerOptions, MemoryStore, Primitive, Resource};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

const DOCS: &str = include_str!("../src/docs/observability.md");
const SECRET_NAME: &str = "customer-4711";

/// Does one of everything.
async fn live(names_in_metrics: bool) {
    let store = MemoryStore::new();
    let locker = || {
        let mut options = LockerOptions::default();
        options.names_in_metrics = names_in_metrics;
        options.label = "someone".into();
        Locker::with_options(store.backend(), options).unwrap()
    };
    let (one, other) = (locker(), locker());
    let lock = one.mutex(SECRET_NAME).ttl(Duration::from_secs(1));
    let guard = lock.lock().await.unwrap();
    assert!(other.mutex(SECRET_NAME).try_lock().await.unwrap().is_none());
    let impatient = other.mutex(SECRET_NAME).wait(Duration::from_secs(3));
    assert!(impatient.lock().await.is_err());
    // Its place in line is withdrawn.
    tokio::time::sleep(Duration::from_millis(100)).await;
    one.request_release(guard.id().resource()).await.unwrap();
    other.evict(guard.id()).await.unwrap();
    assert!(!guard.is_held());
    drop(guard);
    let _ = lock.lock().await.unwrap().unlock().await.unwrap();
    drop(one.semaphore(SECRET_NAME, 2).acquire().await.unwrap());
    one.latch(SECRET_NAME).try_set(1).await.unwrap();
    one.latch(SECRET_NAME).count_down("a").await.unwrap();
    one.latch(SECRET_NAME).wait().await.unwrap();
    let kept = lock.lock().await.unwrap();
    one.close().await.unwrap();
    drop(kept);
    other.close().await.unwrap();
    let mutex = Resource::new(Primitive::Mutex, SECRET_NAME.parse().unwrap());
    assert!(other.inspect(&mutex).await.is_err());
}

/// `tracing` remembers for the whole process which records nobody wants.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn run(names_in_metrics: bool) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(live(names_in_metrics));
}

fn measured(names_in_metrics: bool) -> Snapshotter {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || run(names_in_metrics));
    snapshotter
}

/// `name{key=value,…}` and the value of each.
fn lines(snapshotter: &Snapshotter) -> Vec<(String, DebugValue)> {
    let all = snapshotter.snapshot().into_vec().into_iter();
    all.map(|(key, _, _, value)| {
        let (_, key) = key.into_parts();
        let labels: Vec<String> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        (format!("{}{{{}}}", key.name(), labels.join(",")), value)
    })
    .collect()
}

#[test]
fn the_page_lists_exactly_the_metrics_that_there_are() {
    let told: BTreeSet<String> = lines(&measured(false))
        .into_iter()
        .map(|(line, _)| line.split('{').next().unwrap().to_owned())
        .collect();
    let listed: BTreeSet<String> = DOCS
        .lines()
        .filter_map(|line| line.strip_prefix("| `lockkit_"))
        .map(|line| format!("lockkit_{}", line.split('`').next().unwrap()))
        .collect();
    assert_eq!(told, listed);
}

#[test]
fn the_numbers_are_right() {
    let lines = lines(&measured(false));
    let value = |line: &str| {
        let found = lines.iter().find(|(name, _)| name == line);
        &found.unwrap_or_else(|| panic!("no {line} in {lines:#?}")).1
    };
    let mutex = "backend=memory,primitive=mutex";
    for (line, count) in [
        (
            format!("lockkit_acquisitions_total{{{mutex},outcome=acquired}}"),
            3,
        ),
        (
            format!("lockkit_acquisitions_total{{{mutex},outcome=busy}}"),
            1,
        ),
        (
            format!("lockkit_acquisitions_total{{{mutex},outcome=timed out}}"),
            1,
        ),
        (format!("lockkit_contentions_total{{{mutex}}}"), 2),
        (format!("lockkit_losses_total{{{mutex},reason=gone}}"), 1),
        (format!("lockkit_losses_total{{{mutex},reason=closed}}"), 1),
        (
            format!("lockkit_evictions_total{{{mutex},outcome=done}}"),
            1,
        ),
        (format!("lockkit_release_requests_total{{{mutex}}}"), 1),
        (
            "lockkit_acquisitions_total{backend=memory,primitive=latch,outcome=acquired}".into(),
            1,
        ),
    ] {
        assert_eq!(value(&line), &DebugValue::Counter(count), "{line}");
    }
    for gauge in ["lockkit_holds", "lockkit_waiters"] {
        let line = format!("{gauge}{{backend=memory}}");
        assert_eq!(value(&line), &DebugValue::Gauge(0.0.into()), "{line}");
    }
    let DebugValue::Histogram(waits) = value(&format!(
        "lockkit_wait_seconds{{{mutex},outcome=timed out}}"
    )) else {
        panic!("not a histogram");
    };
    assert!((3.0..3.5).contains(&waits[0].into_inner()), "{waits:?} s");
}

#[test]
fn names_are_labels_only_if_asked_for() {
    let names = |asked_for| {
        let lines = lines(&measured(asked_for));
        lines.iter().any(|(line, _)| line.contains(SECRET_NAME))
    };
    assert!(!names(false));
    assert!(names(true));
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn records_say_who_did_what_and_show_no_capability() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || run(false));
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    for wanted in [
        "acquire{",
        "acquire ended",
        "somebody is before us",
        "let go",
        "lost",
        "release answered",
        "renewed",
        "release requested",
        "evicted",
    ] {
        assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
    }
    let audit = text.lines().find(|line| line.contains("evicted")).unwrap();
    for wanted in [
        "WARN",
        "lockkit::audit",
        "by=someone",
        "holder=someone",
        "fence=1",
    ] {
        assert!(audit.contains(wanted), "no {wanted:?} in {audit}");
    }
    // The random half of an id, 32 hex digits.
    let hex = |word: &str| word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    assert!(!words.any(hex), "an id in\n{text}");
}
