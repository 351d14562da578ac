#![doc = include_str!("../../README.md")]
//!
//! # In this crate
//!
//! [`connect`] opens a backend by its URL and gives a [`Locker`]; everything else comes from
//! `lockkit-core` and is documented where it is used: [`Mutex`], [`Guard`], [`Owner`],
//! [`LockerOptions`], [`Error`].

mod connect;

pub use connect::{backends, connect, connect_with};
pub use lockkit_core::*;

#[cfg(feature = "sqlite")]
#[doc(no_inline)]
pub use lockkit_sql::Sqlite;
