-- The names under which addresses of ELOG's pages have attachments (attachment/stored_name.rs), so that each is found by one look-up.
CREATE TABLE stored_name (book INTEGER NOT NULL, name TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (book, name, id)) WITHOUT ROWID;
