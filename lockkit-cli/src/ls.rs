//! `lockkit ls`: who holds and who waits.

use std::io::{self, IsTerminal as _};

use lockkit::{Holder, Locker, Primitive, Snapshot};
use serde_json::Value;

use crate::args::{Global, Ls};
use crate::duration::short;
use crate::exit::{self, Failure};
use crate::fence;
use crate::open;
use crate::output::{self, Output};
use crate::shown::{self, short_id};
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
        let json = |snapshot| shown::json(locker, snapshot);
        return Ok(format!(
            "{}\n",
            snapshots.iter().map(json).collect::<Value>()
        ));
    }
    if snapshots.is_empty() {
        return Ok("nothing is locked\n".to_owned());
    }
    Ok(table(locker, &snapshots))
}

/// One line for each latch, holder and waiter, under a line of headings.
pub(crate) fn table(locker: &Locker, snapshots: &[Snapshot]) -> String {
    let headings = [
        "NAME",
        "KIND",
        "STATE",
        "HOW",
        "WHO",
        "ID",
        "FENCE",
        "SINCE",
        "REMAINING",
    ];
    let mut rows = vec![headings.map(String::from)];
    rows.extend(
        snapshots
            .iter()
            .flat_map(|snapshot| rows_of(locker, snapshot)),
    );
    table::columns(&rows)
}

fn rows_of(locker: &Locker, snapshot: &Snapshot) -> Vec<[String; 9]> {
    let none = || "-".to_owned();
    let is_latch = snapshot.resource.primitive() == Primitive::Latch;
    let row = |cells: [String; 7]| {
        let [state, how, who, id, fence, since, remaining] = cells;
        let name = snapshot.resource.name().to_string();
        let kind = snapshot.resource.primitive().to_string();
        [name, kind, state, how, who, id, fence, since, remaining]
    };
    let latch = snapshot.latch.map(|latch| {
        let (state, how) = match latch.is_open() {
            true => ("open", format!("all {} have come", latch.of)),
            false => ("closed", format!("{} of {} to come", latch.left, latch.of)),
        };
        let rest = [none(), none(), none(), none(), none()];
        let [who, id, fence, since, remaining] = rest;
        row([state.to_owned(), how, who, id, fence, since, remaining])
    });
    let holders = snapshot.holders.iter().map(|holder| {
        row([
            state(holder),
            holder.mode.to_string(),
            holder.label.to_string(),
            short_id(&holder.id),
            fence::of(locker, holder.fence).map_or_else(none, |fence| fence.to_string()),
            short(holder.held_for),
            short(holder.remaining),
        ])
    });
    let waiters = snapshot.waiters.iter().enumerate().map(|(i, waiter)| {
        row([
            format!("waiting, {}", i + 1),
            if is_latch {
                "until open".to_owned()
            } else {
                waiter.mode.to_string()
            },
            waiter.label.to_string(),
            none(),
            none(),
            short(waiter.waited),
            none(),
        ])
    });
    latch.into_iter().chain(holders).chain(waiters).collect()
}

fn state(holder: &Holder) -> String {
    let mut state = String::from("held");
    if holder.detached {
        state.push_str(", detached");
    }
    if holder.asked_to_release {
        state.push_str(", asked for");
    }
    state
}
