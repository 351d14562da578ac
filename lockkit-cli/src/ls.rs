//! `lockkit ls`: who holds and who waits.

use std::io::{self, IsTerminal as _};
use std::time::SystemTime;

use lockkit::{Holder, Label, Locker, Mode, Order, Snapshot, Waiter};
use serde_json::{Value, json};

use crate::args::{Global, Ls};
use crate::duration::{millis, short};
use crate::exit::{self, Failure};
use crate::open;
use crate::output::{self, Output};
use crate::signals::Signals;
use crate::table;

/// To the top left corner, then erase what is below.
const REDRAW: &str = "\x1b[H\x1b[J";

/// Lists once, or again and again until a signal.
pub(crate) async fn ls(args: Ls, global: &Global, output: &Output) -> Result<u8, Failure> {
    let url = open::url(global)?;
    open::with_locker(&url, output, async |locker| {
        let Some(interval) = args.watch else {
            output::listing(&list(locker, &args.prefix, output).await?)?;
            return Ok(exit::OK);
        };
        let mut signals = Signals::ending()?;
        let redraw = io::stdout().is_terminal() && !output.is_json();
        loop {
            let mut text = list(locker, &args.prefix, output).await?;
            if redraw {
                text.insert_str(0, REDRAW);
            }
            output::result(&text)?;
            if let Err(signal) = signals.unless(tokio::time::sleep(interval)).await {
                return Ok(exit::of_signal(signal));
            }
        }
    })
    .await
}

async fn list(locker: &Locker, prefix: &str, output: &Output) -> Result<String, Failure> {
    let snapshots = locker.list(prefix).await?;
    if output.is_json() {
        return Ok(format!(
            "{}\n",
            snapshots.iter().map(json_of).collect::<Value>()
        ));
    }
    if snapshots.is_empty() {
        return Ok("nothing is locked\n".to_owned());
    }
    let mut rows = vec![
        [
            "NAME",
            "KIND",
            "STATE",
            "WHO",
            "FENCE",
            "SINCE",
            "REMAINING",
        ]
        .map(String::from),
    ];
    rows.extend(snapshots.iter().flat_map(rows_of));
    Ok(table::columns(&rows))
}

fn rows_of(snapshot: &Snapshot) -> Vec<[String; 7]> {
    let name = snapshot.resource.name().to_string();
    let kind = snapshot.resource.primitive().to_string();
    let holders = snapshot.holders.iter().map(|holder| {
        let state = if holder.detached {
            "held, detached"
        } else {
            "held"
        };
        [
            name.clone(),
            kind.clone(),
            state.to_owned(),
            holder.label.to_string(),
            holder.fence.to_string(),
            short(holder.held_for),
            short(holder.remaining),
        ]
    });
    let waiters = snapshot.waiters.iter().enumerate().map(|(i, waiter)| {
        [
            name.clone(),
            kind.clone(),
            format!("waiting, {}", i + 1),
            waiter.label.to_string(),
            "-".to_owned(),
            short(waiter.waited),
            "-".to_owned(),
        ]
    });
    holders.chain(waiters).collect()
}

fn json_of(snapshot: &Snapshot) -> Value {
    json!({
        "name": snapshot.resource.name().as_str(),
        "kind": snapshot.resource.primitive().as_str(),
        "fence": snapshot.fence.map(|fence| fence.get()),
        "holders": snapshot.holders.iter().map(json_of_holder).collect::<Value>(),
        "waiters": snapshot.waiters.iter().map(json_of_waiter).collect::<Value>(),
    })
}

fn json_of_holder(holder: &Holder) -> Value {
    json!({
        "label": json_of_label(&holder.label),
        "mode": word(holder.mode),
        "fence": holder.fence.get(),
        "since": since(holder.held_for),
        "held_ms": millis(holder.held_for),
        "remaining_ms": millis(holder.remaining),
        "detached": holder.detached,
    })
}

fn json_of_waiter(waiter: &Waiter) -> Value {
    json!({
        "label": json_of_label(&waiter.label),
        "mode": word(waiter.mode),
        "fair": waiter.order == Order::Fair,
        "since": since(waiter.waited),
        "waited_ms": millis(waiter.waited),
    })
}

fn json_of_label(label: &Label) -> Value {
    json!({ "text": label.text(), "host": label.host(), "pid": label.pid() })
}

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Shared => "shared",
        Mode::Permits { .. } => "permits",
        _ => "exclusive",
    }
}

/// The date and time so long ago, in UTC.
fn since(ago: std::time::Duration) -> Option<String> {
    let then = SystemTime::now().checked_sub(ago)?;
    Some(humantime::format_rfc3339_seconds(then).to_string())
}
