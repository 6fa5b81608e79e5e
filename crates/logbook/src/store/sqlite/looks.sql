-- Looks at entries by day, counted from 1970-01-01 in UTC (store/looks.rs).
CREATE TABLE look (book INTEGER NOT NULL, id INTEGER NOT NULL, day INTEGER NOT NULL, looks INTEGER NOT NULL, PRIMARY KEY (book, id, day)) WITHOUT ROWID;
