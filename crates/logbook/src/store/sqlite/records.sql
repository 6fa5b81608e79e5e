-- The data beside the logbooks: users, rights, sessions and the like, each a JSON value under a kind and a name.
CREATE TABLE record (kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (kind, name)) WITHOUT ROWID;
-- The last changes of entries, so that a process learns of the changes that other processes made. Old ones are removed (journal.rs).
CREATE TABLE change (number INTEGER PRIMARY KEY AUTOINCREMENT, book INTEGER NOT NULL, id INTEGER NOT NULL, what TEXT NOT NULL);
