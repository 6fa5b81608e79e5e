-- Who brought each file, and its size; and the sums by book and user, as in store/sqlite/used.sql.
ALTER TABLE attached ADD COLUMN by text NOT NULL DEFAULT '';
ALTER TABLE attached ADD COLUMN size bigint NOT NULL DEFAULT 0;
CREATE TABLE used (book bigint NOT NULL, by text COLLATE "C" NOT NULL, files bigint NOT NULL, bytes bigint NOT NULL, PRIMARY KEY (book, by));
UPDATE attached SET size = blob.size FROM blob WHERE blob.sha = attached.sha;
UPDATE attached SET by = first.by FROM revision AS first WHERE first.book = attached.book AND first.id = attached.id AND first.number = 0;
INSERT INTO used SELECT book, by, count(*), sum(size)::bigint FROM attached GROUP BY book, by;
CREATE FUNCTION count_attached() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO used VALUES (NEW.book, NEW."by", 1, NEW.size)
        ON CONFLICT (book, by) DO UPDATE SET files = used.files + 1, bytes = used.bytes + excluded.bytes;
    ELSE
        UPDATE used SET files = files - 1, bytes = bytes - OLD.size WHERE book = OLD.book AND by = OLD."by";
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER attached_counts AFTER INSERT OR DELETE ON attached FOR EACH ROW EXECUTE FUNCTION count_attached();
