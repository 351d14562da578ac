//! `lockkit acquire`, `renew` and `release`: a lock that outlives the command, for scripts.

use std::time::Duration;

use lockkit::{HoldId, Released};
use serde_json::json;

use crate::args::{Acquire, Global, Release, Renew};
use crate::duration::{millis, short};
use crate::exit::{self, Failure};
use crate::fence;
use crate::open;
use crate::output::{self, Output};
use crate::shown::with_mode;
use crate::signals::Signals;
use crate::taking::{BEFORE, Claim};

/// Takes a lock that lives by its lease alone, and prints its id.
pub(crate) async fn acquire(
    args: Acquire,
    global: &Global,
    output: &Output,
) -> Result<u8, Failure> {
    let claim = Claim::new(args.taking, "lockkit acquire")?;
    let url = open::url(global)?;
    open::check_ttl(&url, claim.ttl())?;
    let mut signals = Signals::ending()?;
    let connect = open::connect(&url, claim.label().text());
    let locker = open::unless_signalled(&mut signals, BEFORE, connect).await?;
    let work = async {
        let guard = claim.take(&locker, &mut signals, output).await?;
        let (fence, mode) = (fence::of(&locker, guard.fence()), guard.mode());
        let id = guard.detach(claim.ttl()).await?;
        let kind = id.resource().primitive().as_str();
        let event = json!({
            "event": "acquired",
            "name": claim.name().as_str(),
            "kind": kind,
            "fence": fence::json(fence),
        });
        output.note(with_mode(event, mode), || {
            let how = fence::and_mode(fence, mode);
            format!("acquired \"{}\" ({how})", claim.name())
        });
        let line = if output.is_json() {
            let hold = json!({
                "id": id.to_string(),
                "name": claim.name().as_str(),
                "kind": kind,
                "fence": fence::json(fence),
                "remaining_ms": millis(claim.ttl()),
            });
            with_mode(hold, mode).to_string()
        } else {
            id.to_string()
        };
        if let Err(error) = output::result(&format!("{line}\n")) {
            // Nobody knows the id, so nobody could release it.
            locker.release(&id).await?;
            return Err(error.into());
        }
        Ok(exit::OK)
    };
    let outcome = work.await;
    open::close(&locker, &mut signals, output).await;
    outcome
}

/// Prolongs a hold from now.
pub(crate) async fn renew(args: Renew, global: &Global, output: &Output) -> Result<u8, Failure> {
    let id: HoldId = args.id.parse()?;
    let url = open::url(global)?;
    open::check_ttl(&url, args.ttl)?;
    open::with_locker(&url, output, async |locker| {
        locker.renew(&id, args.ttl).await?;
        say_renewed(&id, args.ttl, output)
    })
    .await
}

fn say_renewed(id: &HoldId, ttl: Duration, output: &Output) -> Result<u8, Failure> {
    let name = id.resource().name();
    if output.is_json() {
        let line = json!({ "name": name.as_str(), "remaining_ms": millis(ttl) });
        output::listing(&format!("{line}\n"))?;
    } else {
        output.note(json!(null), || {
            format!("\"{name}\" is held for another {}", short(ttl))
        });
    }
    Ok(exit::OK)
}

/// Lets go of a hold.
pub(crate) async fn release(
    args: Release,
    global: &Global,
    output: &Output,
) -> Result<u8, Failure> {
    let id: HoldId = args.id.parse()?;
    let url = open::url(global)?;
    let name = id.resource().name();
    open::with_locker(&url, output, async |locker| match locker.release(&id).await? {
        Released::Done => {
            output.note(json!({ "event": "released", "name": name.as_str() }), || {
                format!("released \"{name}\"")
            });
            Ok(exit::OK)
        }
        Released::NotHeld => {
            let message = format!(
                "\"{name}\" was not held under this id any more: it ran out, was broken, or was \
                 released before"
            );
            Err(Failure::new(exit::LOST, "lost", message))
        }
    })
    .await
}
