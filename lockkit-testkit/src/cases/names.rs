//! Which names are equal: those with the same bytes, and no others.

use std::sync::Arc;

use lockkit_core::{ErrorKind, LockName};

use super::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Failure, Fixture, Outcome};

topic! { "names":
    every_name_can_be_locked_and_none_meets_another,
    upper_and_lower_case_are_different_names,
    a_name_is_not_in_the_way_of_one_that_begins_with_it,
    long_names_differ_in_their_last_byte,
    a_name_that_is_none_is_refused_before_any_request,
}

/// What names are made of elsewhere, and what has been mistaken for something else before.
const NASTY: &[&str] = &[
    "a",
    "A",
    "a ",
    " a",
    "a.",
    ".",
    "..",
    "...",
    "/",
    "//",
    "a/",
    "/a",
    "a/b",
    "a/b/c",
    "a//b",
    "a\\b",
    "\\",
    "a:b",
    "a%b",
    "a%2Fb",
    "%",
    "_",
    "-",
    "*",
    "?",
    "[a]",
    "{a}",
    "{a}b",
    "a{b}",
    "a,b",
    "a|b",
    "a=b",
    "a&b",
    "a#b",
    "~",
    "$HOME",
    "`id`",
    "'",
    "\"",
    "''",
    "x'; drop table lock; --",
    "x\" or \"1\"=\"1",
    "\0",
    "a\0b",
    "\t",
    "\n",
    "\r\nFLUSHALL\r\n",
    "\u{7f}",
    "\u{1b}[31m",
    "null",
    "NULL",
    "nil",
    "true",
    "0",
    "00",
    "-1",
    "1e9",
    "zookeeper",
    "lock",
    "é",
    "e\u{301}",
    "ß",
    "ss",
    "İ",
    "i",
    "日本語",
    "😀",
    "👨‍👩‍👧",
    "\u{200b}",
    "\u{202e}abc",
    "\u{feff}",
    "\u{fffd}",
    "\u{10ffff}",
];

async fn every_name_can_be_locked_and_none_meets_another(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut guards = Vec::new();
    for name in NASTY {
        let guard = a.mutex(name).try_lock().await?;
        let guard = guard.ok_or_else(|| Failure::new(format!("{name:?} met another name")))?;
        ensure!(
            guard.name().as_str() == *name,
            "{name:?} became {:?}",
            guard.name()
        );
        guards.push(guard);
    }
    for name in NASTY {
        ensure!(
            b.mutex(name).try_lock().await?.is_none(),
            "{name:?} has two holders"
        );
    }
    let mut listed: Vec<String> = b
        .list("")
        .await?
        .iter()
        .map(|s| s.resource.name().as_str().into())
        .collect();
    listed.sort();
    let mut expected = NASTY.to_vec();
    expected.sort_unstable();
    ensure!(listed == expected, "listed as {listed:?}");
    // Each is let go on its own.
    for guard in guards {
        let name = guard.name().clone();
        unlock(guard).await?;
        let free = b.mutex(name.as_str()).try_lock().await?;
        ensure!(free.is_some(), "{name:?} is busy after its unlock");
    }
    Ok(())
}

async fn all_at_once(f: &Fixture, names: &[String]) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut guards = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let client = if i % 2 == 0 { &a } else { &b };
        let guard = client.mutex(name).try_lock().await?;
        guards.push(guard.ok_or_else(|| Failure::new(format!("{name:?} met another name")))?);
    }
    Ok(())
}

async fn upper_and_lower_case_are_different_names(f: Arc<Fixture>) -> Outcome {
    all_at_once(
        &f,
        &["x_a", "x_A", "X_a", "straße", "STRASSE", "é", "É"].map(Into::into),
    )
    .await
}

async fn a_name_is_not_in_the_way_of_one_that_begins_with_it(f: Arc<Fixture>) -> Outcome {
    all_at_once(
        &f,
        &["a", "a/", "a/b", "a/b/c", "a.b", "a:b", "ab", "a b"].map(Into::into),
    )
    .await
}

async fn long_names_differ_in_their_last_byte(f: Arc<Fixture>) -> Outcome {
    let longest = |fill: &str, last: char| {
        let room = LockName::MAX_BYTES - last.len_utf8();
        format!("{}{last}", fill.repeat(room / fill.len()))
    };
    let names: Vec<String> = ["x", "/", "\\", "é"]
        .into_iter()
        .flat_map(|fill| ['1', '2', '/'].map(|last| longest(fill, last)))
        .collect();
    all_at_once(&f, &names).await
}

async fn a_name_that_is_none_is_refused_before_any_request(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    for name in [
        String::new(),
        "x".repeat(201),
        "é".repeat(101),
        "\\".repeat(1000),
    ] {
        let lock = client.mutex(&name);
        for outcome in [lock.lock().await.map(Some), lock.try_lock().await] {
            let Err(error) = outcome else {
                return Err(Failure::new(format!(
                    "{} bytes were taken as a name",
                    name.len()
                )));
            };
            ensure!(error.kind() == ErrorKind::InvalidName, "{error}");
        }
    }
    ensure!(client.wire().requests() == 0, "a request was sent");
    Ok(())
}
