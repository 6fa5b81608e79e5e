-- Signatures of entries, as in store/sqlite/signatures.sql.
CREATE TABLE signature (chain bigint NOT NULL, number bigint NOT NULL, book bigint NOT NULL, id bigint NOT NULL, record text NOT NULL,
    PRIMARY KEY (chain, number));
CREATE INDEX signature_entry ON signature(book, id);
ALTER TABLE entry ADD COLUMN signed bigint NOT NULL DEFAULT 0;
CREATE INDEX entry_signed ON entry(book) WHERE signed > 0;
