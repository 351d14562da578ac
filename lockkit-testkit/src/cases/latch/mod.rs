//! A count that opens at zero.

mod counting;
mod passing;
mod setting;

use lockkit_core::{Primitive, Resource};

use crate::fixture::resource;
use crate::{Case, Client, Fixture, Outcome, Waiting};

pub(super) fn cases() -> Vec<Case> {
    [setting::cases(), counting::cases(), passing::cases()].concat()
}

fn latch(name: &str) -> Outcome<Resource> {
    resource(Primitive::Latch, name)
}

/// Somebody waits for the latch `n`.
async fn waits(f: &Fixture, client: &Client) -> Outcome<Waiting<()>> {
    let lock = client.latch("n");
    (f.queues(client, &latch("n")?, async move { lock.wait().await })).await
}
