-- Remarks about purges, as in store/sqlite/notes.sql.
ALTER TABLE revision ADD COLUMN note text;
-- The number of purges. Each one may have removed words from the vocabulary that a hub still has in its cache.
ALTER TABLE book ADD COLUMN purges bigint NOT NULL DEFAULT 0;
