-- The names under which addresses of ELOG's pages have attachments, as in store/sqlite/names.sql.
CREATE TABLE stored_name (book bigint NOT NULL, name text COLLATE "C" NOT NULL, id bigint NOT NULL, PRIMARY KEY (book, name, id));
