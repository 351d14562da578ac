#![doc = include_str!("../docs/redlock.md")]

mod acquire;
mod admission;
mod backend;
mod ballot;
mod connect;
mod council;
mod descriptor;
mod ears;
mod keep;
mod keys;
mod let_go;
#[cfg(test)]
mod model;
mod peer;
mod record;
mod roll;
mod scripts;
mod seat;
mod ticket;
mod view;
mod voter;

pub use backend::Redlock;
