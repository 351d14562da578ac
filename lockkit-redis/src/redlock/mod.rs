//! Locks on a majority of independent servers; see [`Redlock`] for the rules and why they are safe.

mod acquire;
mod admission;
mod backend;
mod ballot;
mod connect;
mod council;
mod descriptor;
mod ears;
#[cfg(test)]
mod fake;
mod keep;
mod keys;
mod let_go;
#[cfg(test)]
mod model;
mod peer;
mod probe;
mod record;
mod roll;
mod scripts;
mod seat;
#[cfg(test)]
mod storm;
mod ticket;
mod view;
mod voter;

pub use backend::Redlock;
