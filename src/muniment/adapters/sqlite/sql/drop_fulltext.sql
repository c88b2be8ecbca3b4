DROP TRIGGER IF EXISTS text_totals_add;
DROP TRIGGER IF EXISTS text_totals_hide;
DROP TRIGGER IF EXISTS text_totals_drop;
DROP TABLE IF EXISTS text_totals;
DROP TABLE IF EXISTS fulltext_instances;
DROP TABLE IF EXISTS fulltext;
