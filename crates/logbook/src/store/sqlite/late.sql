-- Entries whose second was full when they came, and that have a later second's row (rows.rs); for searches by dates.
CREATE INDEX entry_late ON entry(book, date)
WHERE ((row >> 12) & 34359738367) - 17179869184 > (date - (date % 1000000000 + 1000000000) % 1000000000) / 1000000000;
