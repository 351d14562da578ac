//! The one connection of this process.

use std::sync::Arc;

use lockkit_core::{Clock, Instant, Result};
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, SqliteConnection};

use super::error::{Fault, closed, file_error};
use super::files::Identity;
use super::schema;
use super::session::Session;
use super::shared::Shared;
use super::transaction::{Transaction, delete_session};
use super::writer::{Turn, Writer};

/// The connection, and what goes with it.
#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    open: Option<Open>,
    finished: bool,
}

#[derive(Debug)]
struct Open {
    sql: SqliteConnection,
    /// The file that is open.
    identity: Identity,
    writer: Writer,
    /// Something was begun and its end was not seen.
    in_doubt: bool,
}

/// The right to write one statement.
#[derive(Debug)]
pub(super) struct Write<'c> {
    pub(super) sql: &'c mut SqliteConnection,
    /// The clock, read when our turn had come and nothing was sent yet.
    pub(super) now: Instant,
    /// To be set while nobody knows in which state a statement leaves the connection.
    pub(super) in_doubt: &'c mut bool,
    _turn: Turn,
}

impl Connection {
    pub(super) async fn open(shared: Arc<Shared>) -> Result<Self> {
        let mut connection = Self {
            shared,
            open: None,
            finished: false,
        };
        match connection.ready().await {
            Ok(_) => Ok(connection),
            Err(fault) => Err(fault.into_error(connection.shared.files.database())),
        }
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Gives up a connection to a file that does not stand at the path any more.
    pub(super) fn verify(&mut self) -> Result<()> {
        if let Some(open) = &self.open {
            if self.shared.files.identity()? != Some(open.identity) {
                // Nobody who comes now sees the old file, so nothing in it is worth anything.
                self.shared.end_all_sessions();
                self.open = None;
            } else if open.in_doubt {
                self.open = None;
            }
        }
        Ok(())
    }

    /// A connection to the file that stands at the path now.
    async fn ready(&mut self) -> Result<&mut Open, Fault> {
        if self.finished {
            return Err(closed().into());
        }
        self.verify()?;
        match &mut self.open {
            Some(open) => Ok(open),
            none => Ok(none.insert(Open::new(&self.shared).await?)),
        }
    }

    /// For reading.
    pub(super) async fn read(&mut self) -> Result<&mut SqliteConnection, Fault> {
        Ok(&mut self.ready().await?.sql)
    }

    /// For writing one statement.
    pub(super) async fn write(&mut self) -> Result<Write<'_>, Fault> {
        let open = self.ready().await?;
        let turn = open.writer.turn().await?;
        Ok(Write {
            sql: &mut open.sql,
            now: Clock::Boot.now(),
            in_doubt: &mut open.in_doubt,
            _turn: turn,
        })
    }

    /// Begins a transaction that writes. To be [ended](Transaction::end).
    pub(super) async fn begin(&mut self) -> Result<Transaction<'_>, Fault> {
        let shared = Arc::clone(&self.shared);
        let open = self.ready().await?;
        let turn = open.writer.turn().await?;
        open.in_doubt = true;
        let begun = sqlx::query("BEGIN IMMEDIATE").execute(&mut open.sql).await;
        open.in_doubt = begun.is_ok();
        begun?;
        Ok(Transaction::new(
            shared,
            &mut open.sql,
            &mut open.in_doubt,
            turn,
        ))
    }

    /// Ends our sessions and this connection.
    pub(super) async fn close_sessions(&mut self) -> Result<(), Fault> {
        let sessions = self.shared.registry.sessions();
        let mut ended = Ok(());
        if self.open.is_some() && !sessions.is_empty() {
            ended = self.delete_sessions(&sessions).await;
        }
        for session in sessions {
            session.end();
            self.shared.files.remove_session(session.id);
        }
        self.shared.registry.clear();
        self.finish();
        ended
    }

    async fn delete_sessions(&mut self, sessions: &[Arc<Session>]) -> Result<(), Fault> {
        if let Some(open) = &mut self.open {
            // Nothing that a reboot does not do as well: no flush.
            let relax = sqlx::raw_sql("PRAGMA synchronous = NORMAL");
            relax.execute(&mut open.sql).await?;
        }
        let transaction = self.begin().await?;
        let mut deleted = Ok(());
        for session in sessions {
            deleted = deleted.and(delete_session(transaction.sql, session.id).await);
        }
        transaction.end(deleted).await
    }

    /// Gives the connection up if it may be worse after a job than before, so that the next job
    /// opens a new one.
    pub(super) fn settle<T>(&mut self, done: Result<T, Fault>) -> Result<T, Fault> {
        if done
            .as_ref()
            .is_err_and(|fault| !fault.spares_the_connection())
        {
            self.open = None;
        }
        done
    }

    /// Gives the connection up for good.
    ///
    /// What is committed is safe. The connection's own thread tidies up the write-ahead log; a
    /// process that ends now must not wait for that, and leaves it to the next.
    fn finish(&mut self) {
        self.finished = true;
        self.open = None;
    }
}

impl Open {
    async fn new(shared: &Shared) -> Result<Self, Fault> {
        let files = &shared.files;
        files.prepare(shared.options.create)?;
        let missing = || file_error("open the database", files.database(), gone());
        let identity = files.identity()?.ok_or_else(missing)?;
        let mut writer = Writer::open(files.writer(), shared.options.busy_timeout)?;
        let mut sql = SqliteConnectOptions::new()
            .filename(files.database())
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(false)
            .busy_timeout(shared.options.busy_timeout)
            .thread_name(|_| "lockkit-sqlite".into())
            .disable_statement_logging()
            .connect()
            .await?;
        schema::prepare(&mut sql, &mut writer, shared).await?;
        Ok(Self {
            sql,
            identity,
            writer,
            in_doubt: false,
        })
    }
}

fn gone() -> std::io::Error {
    std::io::Error::from(std::io::ErrorKind::NotFound)
}
