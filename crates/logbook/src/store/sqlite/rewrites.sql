-- How often a book was changed in another way than by an entry after its last one: by an edit, a deletion, an entry with an earlier
-- date. Until then, what a search found out about the entries that were there stays true (store/verdicts.rs).
ALTER TABLE book ADD COLUMN rewrites INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER entry_taken AFTER DELETE ON entry BEGIN
    UPDATE book SET rewrites = rewrites + 1 WHERE num = old.book;
END;
CREATE TRIGGER entry_changed AFTER UPDATE OF row, book, id, date, parent, thread, encoding, posted_by, attributes, attachments, links ON entry BEGIN
    UPDATE book SET rewrites = rewrites + 1 WHERE num = new.book;
END;
CREATE TRIGGER entry_between AFTER INSERT ON entry WHEN EXISTS (SELECT 1 FROM entry WHERE row > new.row AND row < (new.book + 1) << 47) BEGIN
    UPDATE book SET rewrites = rewrites + 1 WHERE num = new.book;
END;
CREATE TRIGGER body_changed AFTER UPDATE ON body BEGIN
    UPDATE book SET rewrites = rewrites + 1 WHERE num = new.row >> 47;
END;
