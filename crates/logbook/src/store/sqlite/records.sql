-- What is kept beside the logbooks: users, rights, sessions and the like, each a JSON value under a kind and a name.
CREATE TABLE record (kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (kind, name)) WITHOUT ROWID;
-- The last changes of entries, so that whoever waits for new ones learns of those that other processes made. Old ones go (journal.rs).
CREATE TABLE change (number INTEGER PRIMARY KEY AUTOINCREMENT, book INTEGER NOT NULL, id INTEGER NOT NULL, what TEXT NOT NULL);
