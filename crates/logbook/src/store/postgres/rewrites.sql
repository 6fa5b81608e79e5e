-- The last transaction that changed a book in another way than by entries after its last one, as the count in
-- store/sqlite/rewrites.sql. Each entry that is written or taken away has its row in `word`. A transaction changes the book's row
-- once, however many entries it changes.
ALTER TABLE book ADD COLUMN rewrites bigint NOT NULL DEFAULT 0;
CREATE FUNCTION mark_taken() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    UPDATE book SET rewrites = txid_current() WHERE num IN (SELECT DISTINCT taken.row >> 47 FROM taken) AND rewrites <> txid_current();
    RETURN NULL;
END $$;
-- Of the rows from the first written one on, as many are looked at as were written: one more belongs to a later entry.
CREATE FUNCTION mark_between() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    UPDATE book SET rewrites = txid_current() FROM
        (SELECT written.row >> 47 AS num, min(written.row) AS first, count(*) AS several FROM written GROUP BY 1) AS added
        WHERE book.num = added.num AND rewrites <> txid_current() AND (SELECT count(*) FROM
            (SELECT 1 FROM word WHERE word.row >= added.first AND word.row < (added.num + 1) << 47 LIMIT added.several + 1) AS later) > added.several;
    RETURN NULL;
END $$;
CREATE TRIGGER word_taken AFTER DELETE ON word REFERENCING OLD TABLE AS taken FOR EACH STATEMENT EXECUTE FUNCTION mark_taken();
CREATE TRIGGER word_changed AFTER UPDATE ON word REFERENCING OLD TABLE AS taken FOR EACH STATEMENT EXECUTE FUNCTION mark_taken();
CREATE TRIGGER word_between AFTER INSERT ON word REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION mark_between();
