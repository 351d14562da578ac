//! The conformance suite of lockkit: what every backend must pass.
//!
//! Cases are [data](Case); a backend joins with a [`Harness`] and one line, and gets the whole
//! suite as tests with names and filters, run by `libtest-mimic`:
//!
//! ```toml
//! [dev-dependencies]
//! lockkit-testkit = "0.1"
//!
//! [[test]]
//! name = "conformance"
//! harness = false
//! ```
//!
//! See [`Harness`] for the program. What the suite does beyond calling functions:
//!
//! * Every case has a service to itself, and ends with a **census**: no hold, place in line,
//!   session or file may be left ([`Harness::census`]).
//! * A capability that the backend [claims](lockkit_core::Descriptor) is tested; one that it lacks
//!   is reported as ignored, with the [need](Need) in its name; a service that is absent is a
//!   failure.
//! * The [**sweep**](sweep) drops each operation after n polls, for every n until it completes.
//! * Every client's requests travel on a [**wire**](Wire) that loses them, or their replies, where
//!   a case says so.
//! * A [**proxy**](Proxy) cuts, stalls and delays the connections to a server, or loses replies.
//! * [**Child processes**](Peer) hold, wait, are stopped and are killed.
//! * [**Histories**](History) of contended names are judged by an [oracle](violations).
//! * [**Storms**](model) of random operations, cancellations and kills are judged against a
//!   sequential model.
//! * Backends that live in one process run on a paused clock ([`Time::Virtual`]), where a lease of
//!   half a minute takes no time.
//! * The suite itself is tested by [**liars**](liars): backends that each break one rule, and that
//!   the case meant for it must catch.

mod case;
mod cases;
mod client;
mod expect;
mod failure;
mod fixture;
mod harness;
mod history;
pub mod liars;
mod memory;
pub mod model;
mod oracle;
mod peer;
mod proxy;
mod suite;
mod sweep;
mod waiting;
mod wire;

pub use case::{Case, Need, Run};
pub use cases::cases;
pub use client::Client;
pub use failure::{Failure, Outcome};
pub use fixture::Fixture;
pub use harness::{Harness, Time, leftovers};
pub use history::{History, Open, Span};
pub use memory::InMemory;
pub use oracle::{Violation, violations};
pub use peer::{Peer, peer_main};
pub use proxy::{Flow, Proxy, Traffic};
pub use suite::{main, main_with, run, trials};
pub use sweep::{Round, Step, sweep, sweep_of};
pub use waiting::Waiting;
pub use wire::{Fault, Wire};
