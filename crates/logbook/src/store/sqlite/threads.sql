-- The newest entry of each thread, for lists of threads by their last reply. `head` is the id of the first entry, `newest` a row.
CREATE TABLE thread (book INTEGER NOT NULL, head INTEGER NOT NULL, newest INTEGER NOT NULL, PRIMARY KEY (book, head)) WITHOUT ROWID;
INSERT INTO thread SELECT book, thread, max(row) FROM entry GROUP BY book, thread;
CREATE INDEX thread_newest ON thread(book, newest);
