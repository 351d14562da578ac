//! `lockkit break`: an operator takes a lock away.

use std::io::{self, BufRead as _, IsTerminal as _};

use lockkit::{Fence, HoldId, Holder, LockName, Released};
use serde_json::json;

use crate::args::{Break, Global};
use crate::duration::{millis, short};
use crate::exit::{self, Failure};
use crate::fence;
use crate::held;
use crate::open;
use crate::output::{self, Output};
use crate::shown::{self, short_id};

/// Evicts those that were asked for, and says whom.
pub(crate) async fn evict(args: Break, global: &Global, output: &Output) -> Result<u8, Failure> {
    let name = LockName::new(args.name)?;
    let wanted = args.id.as_deref().map(Wanted::new).transpose()?;
    let url = open::url(global)?;
    open::with_locker(&url, output, async |locker| {
        let held = held::of(locker, &name, args.kind).await?;
        let mut holders: Vec<_> = held.holders().collect();
        if let Some(wanted) = &wanted {
            holders.retain(|holder| wanted.is(&holder.id));
            if holders.is_empty() {
                return Err(wanted.missing(&name));
            }
        }
        if holders.is_empty() {
            if !output.is_json() && !output.is_quiet() {
                output::listing(&format!("\"{name}\" is free\n"))?;
            }
            return Ok(exit::OK);
        }
        if holders.len() > 1 && !args.all {
            return Err(which(&name, &holders));
        }
        if !args.yes && io::stdin().is_terminal() && !confirmed(&name, &holders)? {
            return Ok(exit::DECLINED);
        }
        for holder in holders {
            // Let go in the meantime: there is nothing to tell of it.
            if locker.evict(&holder.id).await? == Released::Done {
                say_broken(&name, holder, fence::of(locker, holder.fence), output)?;
            }
        }
        Ok(exit::OK)
    })
    .await
}

/// The id of the one to be evicted, or the beginning of it.
#[derive(Debug)]
struct Wanted<'a>(&'a str);

impl<'a> Wanted<'a> {
    fn new(id: &'a str) -> Result<Self, Failure> {
        let digits = id.len() >= 4 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if digits || id.parse::<HoldId>().is_ok() {
            return Ok(Self(id));
        }
        let message = format!(
            "\"{id}\" is not an id; give the 8 digits that `lockkit ls` shows, or what `acquire` \
             printed"
        );
        Err(Failure::new(exit::USAGE, "invalid argument", message))
    }

    fn is(&self, id: &HoldId) -> bool {
        id.attempt().to_string().starts_with(self.0) || id.to_string() == self.0
    }

    fn missing(&self, name: &LockName) -> Failure {
        let message = format!(
            "nobody holds \"{name}\" under the id {}; see `lockkit ls`",
            self.0
        );
        Failure::new(exit::LOST, "lost", message)
    }
}

/// The failure of asking for one of several without saying which.
fn which(name: &LockName, holders: &[&Holder]) -> Failure {
    let count = holders.len();
    let with_id =
        |holder: &Holder| format!("{} is {}", short_id(&holder.id), shown::holder(holder));
    let named = shown::list(holders, with_id).unwrap_or_default();
    let message =
        format!("\"{name}\" has {count} holders; break one with --id, or all with --all: {named}");
    Failure::new(exit::USAGE, "usage", message)
}

fn confirmed(name: &LockName, holders: &[&Holder]) -> io::Result<bool> {
    let question = match holders {
        [_] => "break it?".to_owned(),
        _ => format!("break all {}?", holders.len()),
    };
    let holders = shown::list(holders, shown::holder).unwrap_or_default();
    output::raw(&format!(
        "lockkit: \"{name}\" is held by {holders}; {question} [y/N] "
    ));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn say_broken(
    name: &LockName,
    holder: &Holder,
    fence: Option<Fence>,
    output: &Output,
) -> io::Result<()> {
    if output.is_quiet() {
        return Ok(());
    }
    let line = if output.is_json() {
        let fields = json!({
            "name": name.as_str(),
            "kind": holder.id.resource().primitive().as_str(),
            "id": short_id(&holder.id),
            "broken": holder.label.to_string(),
            "fence": fence::json(fence),
            "held_ms": millis(holder.held_for),
        });
        shown::with_mode(fields, holder.mode).to_string()
    } else {
        format!(
            "broke \"{name}\": {} had it for {} ({})",
            holder.label,
            short(holder.held_for),
            fence::and_mode(fence, holder.mode),
        )
    };
    output::listing(&format!("{line}\n"))
}
