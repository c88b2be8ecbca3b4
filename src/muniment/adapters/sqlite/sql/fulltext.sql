-- Full text, made and dropped on demand; not part of the schema, because everything in it is derived.
--
-- Its rows are numbered by place. What is indexed are terms that are analysed already, and `ascii` leaves each of them
-- as it is: it keeps every sign beyond ASCII, and of ASCII the terms hold small letters and digits only. So a term of a
-- query is held by exactly the rows that hold it in `items.terms`, and counts of rows are exact. Stemming a stem again
-- would join words that search tells apart. Nothing is kept but which rows hold a term.
CREATE VIRTUAL TABLE fulltext USING fts5(terms, content='', detail=none, tokenize='ascii');

-- A delete removes its entries at once, instead of marking them; on by a command, kept in the table.
INSERT INTO fulltext (fulltext, rank) VALUES ('secure-delete', 1);

CREATE VIRTUAL TABLE fulltext_instances USING fts5vocab(fulltext, instance);

-- How many items of each kind are visible in each scope, and how many terms they have together.
CREATE TABLE text_totals (
    scope_no   INTEGER NOT NULL,
    kind       INTEGER NOT NULL,
    documents  INTEGER NOT NULL,
    length     INTEGER NOT NULL,
    PRIMARY KEY (scope_no, kind)
) STRICT, WITHOUT ROWID;

INSERT INTO text_totals (scope_no, kind, documents, length)
SELECT place >> 32, kind, count(*), sum(length(terms) / 8) FROM items WHERE died_seq IS NULL GROUP BY 1, 2;

CREATE TRIGGER text_totals_add AFTER INSERT ON items WHEN NEW.died_seq IS NULL
BEGIN
    INSERT INTO text_totals (scope_no, kind, documents, length)
    VALUES (NEW.place >> 32, NEW.kind, 1, length(NEW.terms) / 8)
    ON CONFLICT DO UPDATE SET documents = documents + 1, length = length + excluded.length;
END;

CREATE TRIGGER text_totals_hide AFTER UPDATE OF deleted_seq, superseded_seq ON items
WHEN OLD.died_seq IS NULL AND NEW.died_seq IS NOT NULL
BEGIN
    UPDATE text_totals SET documents = documents - 1, length = length - length(OLD.terms) / 8
    WHERE scope_no = OLD.place >> 32 AND kind = OLD.kind;
END;

CREATE TRIGGER text_totals_drop AFTER DELETE ON items WHEN OLD.died_seq IS NULL
BEGIN
    UPDATE text_totals SET documents = documents - 1, length = length - length(OLD.terms) / 8
    WHERE scope_no = OLD.place >> 32 AND kind = OLD.kind;
    DELETE FROM text_totals WHERE scope_no = OLD.place >> 32 AND documents = 0;
END;
