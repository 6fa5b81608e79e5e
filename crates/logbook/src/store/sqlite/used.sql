-- Who brought each file, and its size; and the sums by book and user, which the triggers keep (store/quota.rs).
ALTER TABLE attached ADD COLUMN by TEXT NOT NULL DEFAULT '';
ALTER TABLE attached ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
CREATE TABLE used (book INTEGER NOT NULL, by TEXT NOT NULL, files INTEGER NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (book, by)) WITHOUT ROWID;
CREATE TRIGGER attached_more AFTER INSERT ON attached BEGIN
    INSERT OR IGNORE INTO used VALUES (new.book, new.by, 0, 0);
    UPDATE used SET files = files + 1, bytes = bytes + new.size WHERE book = new.book AND by = new.by;
END;
CREATE TRIGGER attached_less AFTER DELETE ON attached BEGIN
    UPDATE used SET files = files - 1, bytes = bytes - old.size WHERE book = old.book AND by = old.by;
END;
