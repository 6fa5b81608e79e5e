-- The logbook's tables. `row` is an entry's place: its book, its second, and its turn in it (rows.rs). So a book is a range of rows,
-- in the order of dates.
CREATE TABLE book (
    num INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    folded TEXT NOT NULL UNIQUE,        -- names are compared without case
    settings TEXT NOT NULL,             -- book::Book as JSON
    next_id INTEGER NOT NULL DEFAULT 1, -- ids are never given twice
    entries INTEGER NOT NULL DEFAULT 0
);
-- Numbers of attribute names, for tags and orders; the same in all books.
CREATE TABLE attribute (num INTEGER PRIMARY KEY, folded TEXT NOT NULL UNIQUE);
CREATE TABLE entry (
    row INTEGER PRIMARY KEY,
    book INTEGER NOT NULL,
    id INTEGER NOT NULL,
    date INTEGER NOT NULL,              -- UTC ns
    zone INTEGER NOT NULL,              -- minutes east of UTC
    changed INTEGER NOT NULL,           -- UTC ns
    revision INTEGER NOT NULL,
    parent INTEGER,
    thread INTEGER NOT NULL,
    encoding TEXT NOT NULL,
    posted_by TEXT NOT NULL,
    attributes TEXT NOT NULL,           -- JSON: [{"name":"Author","values":["Zoe"]},...]
    attachments TEXT NOT NULL,          -- JSON
    links TEXT NOT NULL                 -- JSON
);
CREATE UNIQUE INDEX entry_id ON entry(book, id);
CREATE INDEX entry_thread ON entry(book, thread);
CREATE INDEX entry_parent ON entry(book, parent) WHERE parent IS NOT NULL;
-- Texts, stored apart from the other columns, so that lists read little.
CREATE TABLE body (row INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE tombstone (
    book INTEGER NOT NULL, id INTEGER NOT NULL, gone INTEGER NOT NULL, by TEXT NOT NULL, to_book INTEGER, to_id INTEGER,
    PRIMARY KEY (book, id)
) WITHOUT ROWID;
-- The content of an entry until a revision replaced it; the last revision is the entry itself, without content here.
CREATE TABLE revision (
    book INTEGER NOT NULL, id INTEGER NOT NULL, number INTEGER NOT NULL, at INTEGER NOT NULL, by TEXT NOT NULL, what TEXT NOT NULL,
    content TEXT,
    PRIMARY KEY (book, id, number)
);
-- References of entries, past or present, to blobs.
CREATE TABLE attached (sha TEXT NOT NULL, book INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (sha, book, id)) WITHOUT ROWID;
CREATE TABLE lock (
    book INTEGER NOT NULL, id INTEGER NOT NULL, by TEXT NOT NULL, host TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL,
    PRIMARY KEY (book, id)
) WITHOUT ROWID;
CREATE TABLE draft (number INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, saved INTEGER NOT NULL, draft TEXT NOT NULL);
CREATE INDEX draft_owner ON draft(owner, saved);
CREATE TABLE saved_search (owner TEXT NOT NULL, name TEXT NOT NULL, query TEXT NOT NULL, PRIMARY KEY (owner, name)) WITHOUT ROWID;
CREATE TABLE imported (book INTEGER NOT NULL, id INTEGER NOT NULL, digest BLOB NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (book, id)) WITHOUT ROWID;
-- Orders by attributes: for each entry a key of every attribute of its book.
CREATE TABLE sorting (attribute INTEGER NOT NULL, book INTEGER NOT NULL, key TEXT NOT NULL, row INTEGER NOT NULL,
    PRIMARY KEY (attribute, book, key, row)) WITHOUT ROWID;
-- Words in their order in the text. text.rs cuts and folds them, so that the tokenizer only has to find blanks.
CREATE VIRTUAL TABLE words USING fts5(text, heads, tags, content='', contentless_delete=1, tokenize="ascii");
-- The size of the data that is collected in memory before it is written, at the latest with the transaction. An import writes many
-- entries in one.
INSERT INTO words(words, rank) VALUES ('hashsize', 33554432);
-- The vocabulary: every word, and every proper ending of it of at least two characters.
CREATE TABLE term (term TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE ending (ending TEXT NOT NULL, term TEXT NOT NULL, PRIMARY KEY (ending, term)) WITHOUT ROWID;
