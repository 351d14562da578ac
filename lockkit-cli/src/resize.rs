//! `lockkit resize`: another number of permits or segments.

use lockkit::{LockName, Locker, Primitive, Resource};
use serde_json::json;

use crate::args::{Global, Resize};
use crate::exit::{self, Failure};
use crate::open;
use crate::output::Output;
use crate::shown::held_by;

/// Changes the number that is stored with the name.
pub(crate) async fn resize(args: Resize, global: &Global, output: &Output) -> Result<u8, Failure> {
    let name = LockName::new(args.name)?;
    let url = open::url(global)?;
    open::with_locker(&url, output, async |locker| {
        let (size, things) = match (args.permits, args.segments) {
            (Some(permits), _) => {
                let _ = locker
                    .semaphore(name.as_str(), permits)
                    .set_limit(permits)
                    .await?;
                (permits, "permits")
            }
            (_, segments) => {
                let segments = segments.unwrap_or_default(); // Required by clap.
                let lock = locker.segmented(name.as_str(), segments);
                if lock.set_segments(segments).await?.is_none() {
                    return Err(in_use(locker, name).await);
                }
                (segments, "segments")
            }
        };
        let event = json!({ "event": "resized", "name": name.as_str(), things: size });
        output.note(event, || {
            format!("\"{name}\" has {size} {things} from now on")
        });
        Ok(exit::OK)
    })
    .await
}

/// The failure of changing segments while keys are worked on.
async fn in_use(locker: &Locker, name: LockName) -> Failure {
    let mut message = format!("segments of \"{name}\" are in use; try again when none is");
    let resource = Resource::new(Primitive::Segmented, name);
    if let Ok(snapshot) = locker.inspect(&resource).await
        && let Some(holders) = held_by(&snapshot)
    {
        message = format!("{message}: {holders}");
    }
    Failure::new(exit::CONFLICT, "conflict", message)
}
