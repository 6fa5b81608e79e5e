-- Looks at entries by day, as in store/sqlite/looks.sql.
CREATE TABLE look (book bigint NOT NULL, id bigint NOT NULL, day bigint NOT NULL, looks bigint NOT NULL, PRIMARY KEY (book, id, day));
