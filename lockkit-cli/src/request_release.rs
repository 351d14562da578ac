//! `lockkit request-release`: asking whoever holds a lock to let go.

use std::collections::HashSet;
use std::time::Duration;

use lockkit::{HoldId, LockName, Locker};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use crate::args::{Global, KindWord, RequestRelease};
use crate::duration::short;
use crate::exit::{self, Failure};
use crate::held::{self, Held};
use crate::open;
use crate::output::{self, Output};
use crate::shown;

/// Between two looks at who has let go.
const LOOK: Duration = Duration::from_millis(100);

/// Asks, says how many, and waits for them if that is wanted.
pub(crate) async fn request_release(
    args: RequestRelease,
    global: &Global,
    output: &Output,
) -> Result<u8, Failure> {
    let name = LockName::new(args.name)?;
    let url = open::url(global)?;
    open::with_locker(&url, output, async |locker| {
        // Also where nobody holds it: the next holder could not be asked either.
        locker.descriptor().require_revocation()?;
        let asked = ask(locker, &name, args.kind).await?;
        let held = held::of(locker, &name, args.kind).await?;
        say_asked(&name, asked, &held, output)?;
        match args.wait {
            Some(limit) => until_gone(locker, &name, args.kind, held, limit).await,
            None => Ok(exit::OK),
        }
    })
    .await
}

async fn ask(locker: &Locker, name: &LockName, kind: Option<KindWord>) -> Result<usize, Failure> {
    let mut asked = 0;
    for resource in held::of(locker, name, kind).await?.resources() {
        asked += locker.request_release(resource).await?;
    }
    Ok(asked)
}

fn say_asked(name: &LockName, asked: usize, held: &Held, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        let line = json!({ "name": name.as_str(), "asked": asked });
        output::listing(&format!("{line}\n"))?;
    } else if !output.is_quiet() {
        let detached: Vec<_> = held.holders().filter(|holder| holder.detached).collect();
        let holders = if asked == 1 { "holder" } else { "holders" };
        let mut text = match asked {
            0 if detached.is_empty() => format!("\"{name}\" is free"),
            _ => format!("asked {asked} {holders} of \"{name}\""),
        };
        if let Some(detached) = shown::list(&detached, shown::holder) {
            text = format!(
                "{text}; nobody to ask for {detached}, see `lockkit release` and `lockkit break`"
            );
        }
        output::listing(&format!("{text}\n"))?;
    }
    Ok(())
}

/// Waits until all who were asked have let go; newcomers are none of our business.
async fn until_gone(
    locker: &Locker,
    name: &LockName,
    kind: Option<KindWord>,
    mut held: Held,
    limit: Duration,
) -> Result<u8, Failure> {
    let deadline = Instant::now().checked_add(limit);
    let asked = held.holders().filter(|holder| holder.asked_to_release);
    let asked: HashSet<HoldId> = asked.map(|holder| holder.id.clone()).collect();
    loop {
        let left: Vec<_> = held
            .holders()
            .filter(|holder| asked.contains(&holder.id))
            .collect();
        let Some(holders) = shown::list(&left, shown::holder) else {
            return Ok(exit::OK);
        };
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            let message = format!(
                "\"{name}\" is still held after {} by {holders}",
                short(limit)
            );
            return Err(Failure::new(exit::CONFLICT, "conflict", message));
        }
        match deadline {
            // The last look is at the end.
            Some(deadline) => drop(timeout_at(deadline, sleep(LOOK)).await),
            None => sleep(LOOK).await,
        }
        held = held::of(locker, name, kind).await?;
    }
}
