//! `lockkit latch`: a count that others wait for.

use lockkit::{
    AttemptId, ErrorKind, Label, Latch, LockName, Locker, Primitive, Resource, Snapshot,
};
use serde_json::json;

use crate::args::{Down, Global, LatchCommand, LatchName, Set, Wait};
use crate::exit::{self, Failure};
use crate::ls;
use crate::open;
use crate::output::{self, Output};
use crate::patience::Patience;
use crate::shown;
use crate::signals::Signals;
use crate::wait_line;

/// Does what one of its commands says.
pub(crate) async fn latch(
    command: LatchCommand,
    global: &Global,
    output: &Output,
) -> Result<u8, Failure> {
    match command {
        LatchCommand::Set(args) => set(args, global, output).await,
        LatchCommand::Down(args) => down(args, global, output).await,
        LatchCommand::Wait(args) => wait(args, global, output).await,
        LatchCommand::Show(args) => show(args, global, output).await,
        LatchCommand::Reset(args) => reset(args, global, output).await,
    }
}

async fn set(args: Set, global: &Global, output: &Output) -> Result<u8, Failure> {
    let Set { name, count } = args;
    let resource = resource(name)?;
    let url = open::url(global)?;
    open::with_locker(&url, output, async |locker| {
        let name = resource.name();
        if !locker.latch(name.as_str()).try_set(count).await? {
            return Err(still_closed(locker, &resource).await);
        }
        let event = json!({ "event": "set", "name": name.as_str(), "count": count });
        output.note(event, || format!("\"{name}\" waits for {count}"));
        Ok(exit::OK)
    })
    .await
}

async fn reset(args: LatchName, global: &Global, output: &Output) -> Result<u8, Failure> {
    let resource = resource(args)?;
    let url = open::url(global)?;
    open::with_locker(&url, output, async |locker| {
        let name = resource.name();
        if !locker.latch(name.as_str()).reset().await? {
            return Err(still_closed(locker, &resource).await);
        }
        let event = json!({ "event": "reset", "name": name.as_str() });
        output.note(event, || format!("\"{name}\" is not set"));
        Ok(exit::OK)
    })
    .await
}

async fn down(args: Down, global: &Global, output: &Output) -> Result<u8, Failure> {
    let resource = resource(args.name)?;
    let participant = match args.participant {
        Some(participant) => LockName::new(participant).map_err(|error| {
            let message = format!("the ID of --as is like a name: {error}");
            Failure::new(exit::USAGE, ErrorKind::InvalidArgument.as_str(), message)
        })?,
        None => LockName::new(AttemptId::random().to_string())?,
    };
    let url = open::url(global)?;
    open::with_locker(&url, output, async |locker| {
        let name = resource.name();
        let counted = locker
            .latch(name.as_str())
            .count_down(participant.as_str())
            .await;
        let left = counted.map_err(|error| match error.kind() {
            // The id is fine, so it is the latch.
            ErrorKind::InvalidArgument => {
                let message = format!(
                    "\"{name}\" is not set; first say how many are to come, with `lockkit latch \
                     set {name} COUNT`"
                );
                Failure::new(exit::CONFLICT, "not set", message)
            }
            _ => error.into(),
        })?;
        let line = if output.is_json() {
            json!({ "name": name.as_str(), "left": left }).to_string()
        } else {
            left.to_string()
        };
        output::listing(&format!("{line}\n"))?;
        Ok(exit::OK)
    })
    .await
}

async fn show(args: LatchName, global: &Global, output: &Output) -> Result<u8, Failure> {
    let resource = resource(args)?;
    let url = open::url(global)?;
    open::with_locker(&url, output, async |locker| {
        locker.require(Primitive::Latch)?;
        let snapshot = locker.inspect(&resource).await?;
        let text = if output.is_json() {
            format!("{}\n", shown::json(locker, &snapshot))
        } else {
            let state = shown::latch(snapshot.latch);
            let state = format!("\"{}\" is {state}\n", resource.name());
            if snapshot.waiters.is_empty() {
                state
            } else {
                let waiters = Snapshot {
                    latch: None,
                    ..snapshot
                };
                state + &ls::table(locker, &[waiters])
            }
        };
        output::listing(&text)?;
        Ok(exit::OK)
    })
    .await
}

async fn wait(args: Wait, global: &Global, output: &Output) -> Result<u8, Failure> {
    let resource = resource(args.name)?;
    let label = Label::new(args.label)?;
    let patience = Patience::from(&args.patience);
    let url = open::url(global)?;
    let mut signals = Signals::ending()?;
    let before = "before the latch was open";
    let connect = open::connect(&url, label.text());
    let locker = open::unless_signalled(&mut signals, before, connect).await?;
    let work = async {
        let latch = locker.latch(resource.name().as_str());
        let opened = tokio::select! {
            biased;
            opened = pass(&latch, patience) => opened?,
            never = wait_line::show(&locker, &resource, output) => match never {},
        };
        if opened {
            let event = json!({ "event": "open", "name": resource.name().as_str() });
            output.note(event, || format!("\"{}\" is open", resource.name()));
            return Ok(exit::OK);
        }
        let name = format!("\"{}\"", resource.name());
        let mut message = patience.in_vain(&name, &format!("{name} has not opened"));
        if let Ok(snapshot) = locker.inspect(&resource).await {
            message = format!("{message}: it is {}", shown::latch(snapshot.latch));
        }
        let status = args.patience.conflict_exit_code;
        Err(Failure::new(status, "conflict", message))
    };
    let outcome = open::unless_signalled(&mut signals, before, work).await;
    open::close(&locker, &mut signals, output).await;
    outcome
}

async fn pass(latch: &Latch, patience: Patience) -> lockkit::Result<bool> {
    let passed = match patience.limit() {
        Some(limit) => latch.wait_at_most(limit).await,
        None => latch.wait().await,
    };
    match passed {
        Err(error) if error.kind() == ErrorKind::Timeout => Ok(false),
        passed => passed.map(|()| true),
    }
}

fn resource(name: LatchName) -> Result<Resource, Failure> {
    Ok(Resource::new(Primitive::Latch, LockName::new(name.name)?))
}

/// The failure of changing a latch that somebody may be counting.
async fn still_closed(locker: &Locker, resource: &Resource) -> Failure {
    let state = match locker.inspect(resource).await {
        Ok(snapshot) => shown::latch(snapshot.latch),
        Err(_) => "closed".to_owned(),
    };
    let name = resource.name();
    let message = format!(
        "\"{name}\" is {state}; wait until it is open, or count the rest with `lockkit latch down \
         {name}`"
    );
    Failure::new(exit::CONFLICT, "conflict", message)
}
