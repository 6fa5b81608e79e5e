-- Signatures of entries (signature.rs). `chain` is the book whose chain has the record, `number` its place there; `book` and `id` are
-- where the entry is. `entry.signed` is the number of an entry's records, so that other entries cost no look-up.
CREATE TABLE signature (chain INTEGER NOT NULL, number INTEGER NOT NULL, book INTEGER NOT NULL, id INTEGER NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (chain, number)) WITHOUT ROWID;
CREATE INDEX signature_entry ON signature(book, id);
ALTER TABLE entry ADD COLUMN signed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX entry_signed ON entry(book) WHERE signed > 0;
