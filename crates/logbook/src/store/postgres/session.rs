//! One connection: statements that are prepared once, and what became of it.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use postgres::{CancelToken, Client, Config, NoTls, Row, Statement, types::ToSql};

use crate::store::{Result, StoreError, pool::Health};

/// Statements a connection keeps prepared; after that it forgets them all.
const PREPARED: usize = 256;

/// Ends a statement: waits for its turn to tell changes, as [`Session::alone`] does.
pub const ALONE_TO_TELL: &str = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' change', 0))";

/// Values of a statement.
pub type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection that one thread uses at a time.
pub struct Session {
    client: RefCell<Client>,
    prepared: RefCell<HashMap<String, Statement>>,
    health: Cell<Health>,
    /// How often a connection of the store was lost, and how often when this one was made: one that was made before is lost too.
    losses: Arc<AtomicU64>,
    made_after: u64,
}

impl Session {
    /// Connects. `schema` is quoted already.
    pub fn open(config: &Config, schema: &str, settings: &str, losses: &Arc<AtomicU64>) -> Result<Session> {
        let made_after = losses.load(Ordering::Relaxed);
        let client = config.connect(NoTls)?;
        let session = Session {
            client: RefCell::new(client),
            prepared: RefCell::default(),
            health: Cell::new(Health::Good),
            losses: losses.clone(),
            made_after,
        };
        // No statement here is long enough for code to be made for it.
        session.batch(&format!("SET search_path TO {schema}; SET jit = off; SET client_min_messages = warning; {settings}"))?;
        Ok(session)
    }

    /// What becomes of it when it comes back.
    pub fn health(&self) -> Health {
        match self.health.get() {
            Health::Good if self.client.borrow().is_closed() => Health::Lost,
            Health::Good if self.made_after != self.losses.load(Ordering::Relaxed) => Health::Lost,
            health => health,
        }
    }

    /// It is not to be used again: a statement of it may still be ended from outside.
    pub fn spend(&self) {
        self.health.set(Health::Spent);
    }

    /// What ends a statement of it from outside.
    pub fn cancel_token(&self) -> CancelToken {
        self.client.borrow().cancel_token()
    }

    fn told(&self, error: postgres::Error) -> StoreError {
        let error = StoreError::from(error);
        if matches!(error, StoreError::Lost(_)) {
            self.health.set(Health::Lost);
            self.losses.fetch_add(1, Ordering::Relaxed);
        }
        error
    }

    fn statement(&self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.prepared.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.borrow_mut().prepare(sql).map_err(|error| self.told(error))?;
        let mut prepared = self.prepared.borrow_mut();
        if prepared.len() >= PREPARED {
            prepared.clear();
        }
        prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Waits until nobody else does what has this name in these logbooks, until the transaction ends. Locks of tables were rejected: they
    /// get in the way of the server's own upkeep.
    pub fn alone(&self, what: &str) -> Result<()> {
        self.execute("SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || $1, 0))", &[&what]).map(|_| ())
    }

    /// Forgets the prepared statements.
    pub fn forget(&self) {
        self.prepared.borrow_mut().clear();
    }

    /// The rows of a statement.
    pub fn query(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>> {
        let statement = self.statement(sql)?;
        self.client.borrow_mut().query(&statement, values).map_err(|error| self.told(error))
    }

    /// The only row of a statement, if there is one.
    pub fn one(&self, sql: &str, values: Values<'_>) -> Result<Option<Row>> {
        Ok(self.query(sql, values)?.into_iter().next())
    }

    /// How many rows a statement changed.
    pub fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64> {
        let statement = self.statement(sql)?;
        self.client.borrow_mut().execute(&statement, values).map_err(|error| self.told(error))
    }

    /// Statements without values.
    pub fn batch(&self, sql: &str) -> Result<()> {
        self.client.borrow_mut().batch_execute(sql).map_err(|error| self.told(error))
    }

    /// Rows in the text form of `COPY`.
    pub fn copy_in(&self, sql: &str, rows: &[u8]) -> Result<()> {
        let mut client = self.client.borrow_mut();
        let mut writer = client.copy_in(sql).map_err(|error| self.told(error))?;
        let done = writer.write_all(rows);
        // A refusal is told at the end.
        let finished = writer.finish().map(|_| ()).map_err(|error| self.told(error));
        finished.and(done.map_err(|error| StoreError::Lost(error.to_string())))
    }

    /// Waits at most so long for somebody to tell something.
    pub fn wait(&self, time: std::time::Duration) -> Result<bool> {
        use postgres::fallible_iterator::FallibleIterator;
        let mut client = self.client.borrow_mut();
        let mut notifications = client.notifications();
        let told = notifications.timeout_iter(time).next().map_err(|error| self.told(error))?;
        Ok(told.is_some())
    }
}
