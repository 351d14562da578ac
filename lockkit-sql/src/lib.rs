//! SQL backends of lockkit.
//!
//! A backend is mechanism only: it turns the small operations of
//! [`Backend`](lockkit_core::Backend) into statements. How long to wait, when to renew, and when a
//! hold counts as lost is decided in `lockkit-core`, in the same way for every backend.
//!
//! | feature | module | locks |
//! | --- | --- | --- |
//! | `sqlite` | `sqlite` | in an SQLite file, safe across the processes of one machine |

#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
