-- Remarks about purges (store/purge.rs).
ALTER TABLE revision ADD COLUMN note TEXT;
