//! `lockkit break`: an operator takes a lock away.

use std::io::{self, BufRead as _, IsTerminal as _};

use lockkit::{LockName, Primitive, Released, Resource, Snapshot};
use serde_json::json;

use crate::args::{Break, Global};
use crate::duration::{millis, short};
use crate::exit::{self, Failure};
use crate::open;
use crate::output::{self, Output};
use crate::wait_line::held_by;

/// Evicts every holder, and says whom.
pub(crate) async fn evict(args: Break, global: &Global, output: &Output) -> Result<u8, Failure> {
    let resource = Resource::new(Primitive::Mutex, LockName::new(args.name)?);
    let url = open::url(global)?;
    open::with_locker(&url, output, async |locker| {
        let snapshot = locker.inspect(&resource).await?;
        let Some(holders) = held_by(&snapshot) else {
            if !output.is_json() && !output.is_quiet() {
                output::listing(&format!("\"{}\" is free\n", resource.name()))?;
            }
            return Ok(exit::OK);
        };
        if !args.yes && io::stdin().is_terminal() && !confirmed(&snapshot, &holders)? {
            return Ok(exit::DECLINED);
        }
        for holder in &snapshot.holders {
            // Let go in the meantime: there is nothing to tell of it.
            if locker.evict(&holder.id).await? == Released::NotHeld {
                continue;
            }
            let name = resource.name();
            let line = if output.is_json() {
                json!({
                    "name": name.as_str(),
                    "broken": holder.label.to_string(),
                    "fence": holder.fence.get(),
                    "held_ms": millis(holder.held_for),
                })
                .to_string()
            } else {
                format!(
                    "broke \"{name}\": {} had it for {} (fence {})",
                    holder.label,
                    short(holder.held_for),
                    holder.fence
                )
            };
            if !output.is_quiet() {
                output::listing(&format!("{line}\n"))?;
            }
        }
        Ok(exit::OK)
    })
    .await
}

fn confirmed(snapshot: &Snapshot, holders: &str) -> io::Result<bool> {
    let name = snapshot.resource.name();
    output::raw(&format!(
        "lockkit: \"{name}\" is {holders}; break it? [y/N] "
    ));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
