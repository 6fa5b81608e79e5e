//! One connection, with its prepared statements and its health.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use postgres::{CancelToken, Client, Row, Statement, types::ToSql};

use super::{address::DatabaseAddress, tls::DatabaseTls};
use crate::store::{Result, StoreError, pool::ConnectionHealth};

/// Maximum number of prepared statements of a connection; then it drops them all.
const PREPARED: usize = 256;

/// The statement that waits for this writer's turn to announce changes, as [`Session::alone`] does.
pub const ALONE_TO_TELL: &str = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' change', 0))";

/// Values of a statement.
pub type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection that one thread uses at a time.
pub struct Session {
    client: RefCell<Client>,
    prepared: RefCell<HashMap<String, Statement>>,
    health: Cell<ConnectionHealth>,
    /// The store's count of lost connections, followed by its value when this connection was made. A connection older
    /// than the last loss counts as lost.
    losses: Arc<AtomicU64>,
    made_after: u64,
    tls: DatabaseTls,
}

/// Cancels the current statement of a session, over a connection of its own.
#[derive(Clone)]
pub struct Cancel {
    token: CancelToken,
    tls: DatabaseTls,
}

impl Cancel {
    /// Sends the request. If the server cannot be reached, the statement goes on to its end.
    pub fn send(self) {
        let _ = self.token.cancel_query(self.tls);
    }
}

impl Session {
    /// Connects. `schema` is quoted already.
    pub fn open(address: &DatabaseAddress, schema: &str, settings: &str, losses: &Arc<AtomicU64>) -> Result<Session> {
        let made_after = losses.load(Ordering::Relaxed);
        let client = address.connect()?;
        let session = Session {
            client: RefCell::new(client),
            prepared: RefCell::default(),
            health: Cell::new(ConnectionHealth::Good),
            losses: losses.clone(),
            made_after,
            tls: address.tls.clone(),
        };
        // Statements here are too short for the JIT compiler to pay off.
        session.batch(&format!("SET search_path TO {schema}; SET jit = off; SET client_min_messages = warning; {settings}"))?;
        Ok(session)
    }

    /// Returns the state of the connection for its pool.
    pub fn health(&self) -> ConnectionHealth {
        match self.health.get() {
            ConnectionHealth::Good if self.client.borrow().is_closed() => ConnectionHealth::Lost,
            ConnectionHealth::Good if self.made_after != self.losses.load(Ordering::Relaxed) => ConnectionHealth::Lost,
            health => health,
        }
    }

    /// Returns the number of connections that the store had lost before it made this one.
    pub fn made_after(&self) -> u64 {
        self.made_after
    }

    /// Marks the connection as not reusable: one of its statements may still be cancelled from outside.
    pub fn spend(&self) {
        self.health.set(ConnectionHealth::Spent);
    }

    /// Returns a token that cancels the current statement from outside.
    pub fn cancel_token(&self) -> Cancel {
        Cancel { token: self.client.borrow().cancel_token(), tls: self.tls.clone() }
    }

    fn store_error(&self, error: postgres::Error) -> StoreError {
        let error = StoreError::from(error);
        if matches!(error, StoreError::Lost(_)) {
            self.health.set(ConnectionHealth::Lost);
            self.losses.fetch_add(1, Ordering::Relaxed);
        }
        error
    }

    fn statement(&self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.prepared.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.borrow_mut().prepare(sql).map_err(|error| self.store_error(error))?;
        let mut prepared = self.prepared.borrow_mut();
        if prepared.len() >= PREPARED {
            prepared.clear();
        }
        prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Locks a name in these logbooks until the transaction ends. Rejected: locks of tables, which block the server's
    /// own maintenance.
    pub fn alone(&self, what: &str) -> Result<()> {
        self.execute("SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || $1, 0))", &[&what]).map(|_| ())
    }

    /// Drops the prepared statements.
    pub fn forget(&self) {
        self.prepared.borrow_mut().clear();
    }

    /// The rows of a statement.
    pub fn query(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>> {
        let statement = self.statement(sql)?;
        self.client.borrow_mut().query(&statement, values).map_err(|error| self.store_error(error))
    }

    /// The only row of a statement, if there is one.
    pub fn one(&self, sql: &str, values: Values<'_>) -> Result<Option<Row>> {
        Ok(self.query(sql, values)?.into_iter().next())
    }

    /// Executes a statement and returns the number of changed rows.
    pub fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64> {
        let statement = self.statement(sql)?;
        self.client.borrow_mut().execute(&statement, values).map_err(|error| self.store_error(error))
    }

    /// Runs statements without values.
    pub fn batch(&self, sql: &str) -> Result<()> {
        self.client.borrow_mut().batch_execute(sql).map_err(|error| self.store_error(error))
    }

    /// Rows in the text form of `COPY`.
    pub fn copy_in(&self, sql: &str, rows: &[u8]) -> Result<()> {
        let mut client = self.client.borrow_mut();
        let mut writer = client.copy_in(sql).map_err(|error| self.store_error(error))?;
        let done = writer.write_all(rows);
        // The server reports a refusal at the end.
        let finished = writer.finish().map(|_| ()).map_err(|error| self.store_error(error));
        finished.and(done.map_err(|error| StoreError::Lost(error.to_string())))
    }

    /// Waits at most `time` for a notification; returns whether there was one.
    pub fn wait(&self, time: std::time::Duration) -> Result<bool> {
        use postgres::fallible_iterator::FallibleIterator;
        let mut client = self.client.borrow_mut();
        let mut notifications = client.notifications();
        let notified = notifications.timeout_iter(time).next().map_err(|error| self.store_error(error))?;
        Ok(notified.is_some())
    }
}
