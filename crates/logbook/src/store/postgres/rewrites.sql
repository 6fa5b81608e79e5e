-- How often a book was changed in another way than by an entry after its last one, as in store/sqlite/rewrites.sql. Each entry that is
-- written or taken away has its row in `word`.
ALTER TABLE book ADD COLUMN rewrites bigint NOT NULL DEFAULT 0;
CREATE FUNCTION count_taken() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE book SET rewrites = rewrites + 1 WHERE num IN (SELECT taken.row >> 47 FROM taken);
    RETURN NULL;
END $$;
CREATE FUNCTION count_between() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE book SET rewrites = rewrites + 1 WHERE num IN (SELECT written.row >> 47 FROM written
        WHERE EXISTS (SELECT 1 FROM word WHERE word.row > written.row AND word.row < ((written.row >> 47) + 1) << 47));
    RETURN NULL;
END $$;
CREATE TRIGGER word_taken AFTER DELETE ON word REFERENCING OLD TABLE AS taken FOR EACH STATEMENT EXECUTE FUNCTION count_taken();
CREATE TRIGGER word_changed AFTER UPDATE ON word REFERENCING OLD TABLE AS taken FOR EACH STATEMENT EXECUTE FUNCTION count_taken();
CREATE TRIGGER word_between AFTER INSERT ON word REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION count_between();
