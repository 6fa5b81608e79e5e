-- The logbook's tables, in their own schema. store/sqlite/schema.sql explains them; the comments here give the differences. `row` is an
-- entry's place: its book, its second, and its turn in it (rows.rs). Texts are compared byte by byte, as everywhere else.
CREATE TABLE book (
    num bigint PRIMARY KEY,
    name text NOT NULL,
    folded text COLLATE "C" NOT NULL UNIQUE,
    settings text NOT NULL,             -- book::Book as JSON
    next_id bigint NOT NULL DEFAULT 1,  -- a writer locks this row of the book, so that ids are never given twice
    entries bigint NOT NULL DEFAULT 0
);
CREATE TABLE attribute (num bigint PRIMARY KEY, folded text COLLATE "C" NOT NULL UNIQUE);
CREATE TABLE entry (
    row bigint PRIMARY KEY,
    book bigint NOT NULL,
    id bigint NOT NULL,
    date bigint NOT NULL,               -- UTC ns
    zone bigint NOT NULL,               -- minutes east of UTC
    changed bigint NOT NULL,            -- UTC ns
    revision bigint NOT NULL,
    parent bigint,
    thread bigint NOT NULL,
    encoding text NOT NULL,
    posted_by text NOT NULL,
    attributes text NOT NULL,           -- JSON
    attachments text NOT NULL,          -- JSON
    links text NOT NULL,                -- JSON
    text text NOT NULL                  -- PostgreSQL cannot store a NUL; a text with one is U+0001 and a JSON string
);
CREATE UNIQUE INDEX entry_id ON entry(book, id);
CREATE INDEX entry_thread ON entry(book, thread);
CREATE INDEX entry_parent ON entry(book, parent) WHERE parent IS NOT NULL;
-- Entries whose second was full when they came, and that have a later second's row; for searches by dates.
CREATE INDEX entry_late ON entry(book, date)
WHERE ((row >> 12) & 34359738367) - 17179869184 > (date - (date % 1000000000 + 1000000000) % 1000000000) / 1000000000;
CREATE TABLE tombstone (book bigint NOT NULL, id bigint NOT NULL, gone bigint NOT NULL, by text NOT NULL, to_book bigint, to_id bigint,
    PRIMARY KEY (book, id));
CREATE TABLE revision (book bigint NOT NULL, id bigint NOT NULL, number bigint NOT NULL, at bigint NOT NULL, by text NOT NULL,
    what text NOT NULL, content text, PRIMARY KEY (book, id, number));
CREATE TABLE attached (sha text COLLATE "C" NOT NULL, book bigint NOT NULL, id bigint NOT NULL, PRIMARY KEY (sha, book, id));
-- The bytes of attachments, in pieces of 1 MiB, so that every hub has them.
CREATE TABLE blob (sha text COLLATE "C" PRIMARY KEY, size bigint NOT NULL);
CREATE TABLE piece (sha text COLLATE "C" NOT NULL, number bigint NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (sha, number));
ALTER TABLE piece ALTER bytes SET STORAGE EXTERNAL;
CREATE TABLE lock (book bigint NOT NULL, id bigint NOT NULL, by text NOT NULL, host text NOT NULL, since bigint NOT NULL,
    until bigint NOT NULL, PRIMARY KEY (book, id));
CREATE TABLE draft (number bigserial PRIMARY KEY, owner text NOT NULL, saved bigint NOT NULL, draft text NOT NULL,
    taken boolean NOT NULL DEFAULT false); -- it comes from ELOG's files, and was not saved here
CREATE INDEX draft_owner ON draft(owner, saved);
CREATE TABLE saved_search (owner text NOT NULL, name text COLLATE "C" NOT NULL, query text NOT NULL, PRIMARY KEY (owner, name));
CREATE TABLE imported (book bigint NOT NULL, id bigint NOT NULL, digest bytea NOT NULL, revision bigint NOT NULL, PRIMARY KEY (book, id));
CREATE TABLE record (kind text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, version bigint NOT NULL, value text NOT NULL,
    PRIMARY KEY (kind, name));
CREATE TABLE change (number bigserial PRIMARY KEY, book bigint NOT NULL, id bigint NOT NULL, what text NOT NULL);
CREATE TABLE sorting (attribute bigint NOT NULL, book bigint NOT NULL, key text COLLATE "C" NOT NULL, row bigint NOT NULL,
    PRIMARY KEY (attribute, book, key, row));
-- The index: the properties of an entry, each as a number (tokens.rs). The numbers are stored apart from the rows, so that a query for
-- rows alone reads little. They have no statistics, which would be expensive and useless, because every search uses the index.
CREATE TABLE word (row bigint PRIMARY KEY, words bigint[] NOT NULL) WITH (toast_tuple_target = 128);
ALTER TABLE word ALTER words SET STORAGE EXTERNAL, ALTER words SET STATISTICS 0;
CREATE INDEX word_words ON word USING gin (words);
-- The vocabulary: every word, and every proper ending of it of at least two characters.
CREATE TABLE term (term text COLLATE "C" PRIMARY KEY);
CREATE TABLE ending (ending text COLLATE "C" NOT NULL, term text COLLATE "C" NOT NULL, PRIMARY KEY (ending, term));
