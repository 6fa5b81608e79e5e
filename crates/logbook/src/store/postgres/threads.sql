-- The newest entry of each thread, as in store/sqlite/threads.sql.
CREATE TABLE thread (book bigint NOT NULL, head bigint NOT NULL, newest bigint NOT NULL, PRIMARY KEY (book, head));
INSERT INTO thread SELECT book, thread, max(row) FROM entry GROUP BY book, thread;
CREATE INDEX thread_newest ON thread(book, newest);
