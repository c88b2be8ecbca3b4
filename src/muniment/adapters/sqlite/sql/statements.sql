-- Every statement of the adapter, by name. `:first` and `:last` are places, inclusive. A mask has bit k set where kind
-- (or tier) k is wanted.

-- name: find_tenant
SELECT tenant_no FROM tenants WHERE name = :name;

-- name: insert_tenant
INSERT INTO tenants (name) VALUES (:name) RETURNING tenant_no;

-- name: find_head
SELECT s.scope_no, s.ledger_id, s.next_seq, s.edge, s.epoch, s.salt, s.recorded_us, s.erased_us
FROM tenants AS t
JOIN names AS n ON n.tenant_no = t.tenant_no AND n.subject = :subject
JOIN scopes AS s ON s.scope_no = n.scope_no
WHERE t.name = :tenant;

-- name: insert_scope
INSERT INTO scopes (tenant_no, ledger_id, salt) VALUES (:tenant_no, :ledger_id, :salt) RETURNING scope_no;

-- name: insert_name
INSERT INTO names (tenant_no, subject, scope_no) VALUES (:tenant_no, :subject, :scope_no);

-- name: move_head
UPDATE scopes SET next_seq = :next_seq, edge = :edge, recorded_us = :recorded_us WHERE scope_no = :scope_no;

-- name: raise_epoch
UPDATE scopes SET epoch = epoch + 1 WHERE scope_no = :scope_no RETURNING epoch;

-- name: insert_event
INSERT INTO events (place, event_id, kind, recorded_us, digest, links, leaf) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: insert_content
INSERT INTO contents (place, salt, session_hash, body) VALUES (?, ?, ?, ?);

-- name: find_event
SELECT e.place & 4294967295, e.event_id, e.kind, e.recorded_us, e.digest, e.links, e.leaf, c.salt, c.body
FROM events AS e LEFT JOIN contents AS c ON c.place = e.place
WHERE e.place >> 32 = :scope_no AND e.event_id = :event_id;

-- name: read_events
SELECT e.place & 4294967295, e.event_id, e.kind, e.recorded_us, e.digest, e.links, e.leaf, c.salt, c.body
FROM events AS e LEFT JOIN contents AS c ON c.place = e.place
WHERE e.place BETWEEN :first AND :last AND (:kinds = -1 OR (:kinds >> e.kind) & 1)
ORDER BY e.place LIMIT :limit;

-- name: read_events_newest_first
SELECT e.place & 4294967295, e.event_id, e.kind, e.recorded_us, e.digest, e.links, e.leaf, c.salt, c.body
FROM events AS e LEFT JOIN contents AS c ON c.place = e.place
WHERE e.place BETWEEN :first AND :last AND (:kinds = -1 OR (:kinds >> e.kind) & 1)
ORDER BY e.place DESC LIMIT :limit;

-- name: read_session_events
SELECT e.place & 4294967295, e.event_id, e.kind, e.recorded_us, e.digest, e.links, e.leaf, c.salt, c.body
FROM contents AS c JOIN events AS e ON e.place = c.place
WHERE c.place >> 32 = :scope_no AND c.session_hash = :session_hash AND c.place BETWEEN :first AND :last
    AND (:kinds = -1 OR (:kinds >> e.kind) & 1)
ORDER BY c.place LIMIT :limit;

-- name: read_session_events_newest_first
SELECT e.place & 4294967295, e.event_id, e.kind, e.recorded_us, e.digest, e.links, e.leaf, c.salt, c.body
FROM contents AS c JOIN events AS e ON e.place = c.place
WHERE c.place >> 32 = :scope_no AND c.session_hash = :session_hash AND c.place BETWEEN :first AND :last
    AND (:kinds = -1 OR (:kinds >> e.kind) & 1)
ORDER BY c.place DESC LIMIT :limit;

-- name: read_erasures
SELECT e.place & 4294967295, e.event_id, e.kind, e.recorded_us, e.digest, e.links, e.leaf, c.salt, c.body
FROM events AS e LEFT JOIN contents AS c ON c.place = e.place
WHERE e.kind = 6 AND e.place BETWEEN :first AND :last
ORDER BY e.place LIMIT :limit;

-- name: count_events
SELECT count(*) FROM events WHERE place BETWEEN :first AND :last AND (:kinds = -1 OR (:kinds >> kind) & 1);

-- name: count_session_events
SELECT count(*)
FROM contents AS c JOIN events AS e ON e.place = c.place
WHERE c.place >> 32 = :scope_no AND c.session_hash = :session_hash AND c.place BETWEEN :first AND :last
    AND (:kinds = -1 OR (:kinds >> e.kind) & 1);

-- name: count_beyond
SELECT (SELECT count(*) FROM events WHERE place BETWEEN :first AND :last)
    + (SELECT count(*) FROM contents WHERE place BETWEEN :first AND :last)
    + (SELECT count(*) FROM items WHERE place BETWEEN :first AND :last);

-- name: find_recorded
SELECT recorded_us FROM events WHERE place = :place;

-- name: insert_item
INSERT INTO items (place, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: hide_item
UPDATE items SET deleted_seq = :at_seq WHERE place = :place AND deleted_seq IS NULL;

-- name: supersede_item
UPDATE items SET superseded_seq = :by_seq WHERE place = :place;

-- name: find_items
SELECT i.place & 4294967295, i.kind, i.tier, i.timestamp_us, i.created_us, i.root_seq, i.deleted_seq, i.superseded_seq,
    i.session_hash, i.speaker_hash, i.key_hash, i.text_hash, i.terms, i.retain_us
FROM json_each(:places) AS wanted JOIN items AS i ON i.place = wanted.value;

-- name: read_live_items
SELECT place & 4294967295, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us
FROM items INDEXED BY items_live
WHERE died_seq IS NULL AND place BETWEEN :first AND :last AND (:kinds = -1 OR (:kinds >> kind) & 1)
    AND (:tiers = -1 OR (:tiers >> tier) & 1)
ORDER BY place LIMIT :limit;

-- name: read_live_items_newest_first
SELECT place & 4294967295, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us
FROM items INDEXED BY items_live
WHERE died_seq IS NULL AND place BETWEEN :first AND :last AND (:kinds = -1 OR (:kinds >> kind) & 1)
    AND (:tiers = -1 OR (:tiers >> tier) & 1)
ORDER BY place DESC LIMIT :limit;

-- name: read_tier_items
SELECT place & 4294967295, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us
FROM items INDEXED BY items_by_tier
WHERE place >> 32 = :scope_no AND tier = :tier AND tier > 0 AND place BETWEEN :first AND :last
    AND (:kinds = -1 OR (:kinds >> kind) & 1)
    AND (:hidden OR ((deleted_seq IS NULL OR deleted_seq > :at_seq) AND (superseded_seq IS NULL OR superseded_seq > :at_seq)))
ORDER BY place LIMIT :limit;

-- name: read_tier_items_newest_first
SELECT place & 4294967295, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us
FROM items INDEXED BY items_by_tier
WHERE place >> 32 = :scope_no AND tier = :tier AND tier > 0 AND place BETWEEN :first AND :last
    AND (:kinds = -1 OR (:kinds >> kind) & 1)
    AND (:hidden OR ((deleted_seq IS NULL OR deleted_seq > :at_seq) AND (superseded_seq IS NULL OR superseded_seq > :at_seq)))
ORDER BY place DESC LIMIT :limit;

-- name: read_items
SELECT place & 4294967295, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us
FROM items
WHERE place BETWEEN :first AND :last AND (:kinds = -1 OR (:kinds >> kind) & 1) AND (:tiers = -1 OR (:tiers >> tier) & 1)
    AND (:hidden OR ((deleted_seq IS NULL OR deleted_seq > :at_seq) AND (superseded_seq IS NULL OR superseded_seq > :at_seq)))
ORDER BY place LIMIT :limit;

-- name: read_items_newest_first
SELECT place & 4294967295, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us
FROM items
WHERE place BETWEEN :first AND :last AND (:kinds = -1 OR (:kinds >> kind) & 1) AND (:tiers = -1 OR (:tiers >> tier) & 1)
    AND (:hidden OR ((deleted_seq IS NULL OR deleted_seq > :at_seq) AND (superseded_seq IS NULL OR superseded_seq > :at_seq)))
ORDER BY place DESC LIMIT :limit;

-- name: count_items
SELECT count(*)
FROM items
WHERE place BETWEEN :first AND :last AND (:kinds = -1 OR (:kinds >> kind) & 1) AND (:tiers = -1 OR (:tiers >> tier) & 1)
    AND (:hidden OR ((deleted_seq IS NULL OR deleted_seq > :at_seq) AND (superseded_seq IS NULL OR superseded_seq > :at_seq)));

-- name: read_expired_items
SELECT place & 4294967295, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us
FROM items
WHERE place >> 32 = :scope_no AND retain_us <= :retained_until_us AND place BETWEEN :first AND :last
    AND (:kinds = -1 OR (:kinds >> kind) & 1) AND (:tiers = -1 OR (:tiers >> tier) & 1)
    AND (:hidden OR ((deleted_seq IS NULL OR deleted_seq > :at_seq) AND (superseded_seq IS NULL OR superseded_seq > :at_seq)))
ORDER BY place LIMIT :limit;

-- name: read_expired_items_newest_first
SELECT place & 4294967295, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us
FROM items
WHERE place >> 32 = :scope_no AND retain_us <= :retained_until_us AND place BETWEEN :first AND :last
    AND (:kinds = -1 OR (:kinds >> kind) & 1) AND (:tiers = -1 OR (:tiers >> tier) & 1)
    AND (:hidden OR ((deleted_seq IS NULL OR deleted_seq > :at_seq) AND (superseded_seq IS NULL OR superseded_seq > :at_seq)))
ORDER BY place DESC LIMIT :limit;

-- name: count_expired_items
SELECT count(*)
FROM items
WHERE place >> 32 = :scope_no AND retain_us <= :retained_until_us AND place BETWEEN :first AND :last
    AND (:kinds = -1 OR (:kinds >> kind) & 1) AND (:tiers = -1 OR (:tiers >> tier) & 1)
    AND (:hidden OR ((deleted_seq IS NULL OR deleted_seq > :at_seq) AND (superseded_seq IS NULL OR superseded_seq > :at_seq)));

-- name: read_index_rows
SELECT i.place & 4294967295, i.kind, i.tier, i.timestamp_us, coalesce(i.session_hash, 0), coalesce(i.speaker_hash, 0),
    coalesce(i.died_seq, -1), i.terms, v.codes
FROM items AS i LEFT JOIN vectors AS v ON v.place = i.place AND v.model_no = :model_no
WHERE i.place BETWEEN :first AND :last
ORDER BY i.place LIMIT :limit;

-- name: read_deaths
SELECT place & 4294967295, died_seq FROM items
WHERE place >> 32 = :scope_no AND died_seq >= :first AND died_seq IS NOT NULL AND place < :place
ORDER BY died_seq, place;

-- name: find_by_seqs
SELECT e.place & 4294967295, e.event_id, e.kind, e.recorded_us, e.digest, e.links, e.leaf, c.salt, c.body
FROM json_each(:places) AS wanted
JOIN events AS e ON e.place = wanted.value
LEFT JOIN contents AS c ON c.place = e.place;

-- name: read_unembedded
SELECT i.place & 4294967295 FROM items AS i
WHERE i.place BETWEEN :first AND :last
    AND NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.place = i.place AND v.model_no = :model_no)
ORDER BY i.place LIMIT :limit;

-- name: keep_vector
INSERT INTO vectors (place, model_no, codes) VALUES (?, ?, ?)
ON CONFLICT (place, model_no) DO UPDATE SET codes = excluded.codes;

-- name: erase_vector
DELETE FROM vectors WHERE place = ?;

-- name: drop_vectors_but
DELETE FROM vectors WHERE place BETWEEN :first AND :last AND model_no <> :model_no;

-- name: drop_vectors
DELETE FROM vectors WHERE place BETWEEN :first AND :last;

-- name: find_models
SELECT model_no, name, dimension, probe FROM models ORDER BY model_no;

-- name: insert_model
INSERT INTO models (name, dimension, probe) VALUES (:name, :dimension, :probe)
ON CONFLICT (name, dimension, probe) DO UPDATE SET name = excluded.name
RETURNING model_no;

-- name: find_settings
SELECT name, value FROM settings;

-- name: find_by_key
SELECT place & 4294967295, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us
FROM items WHERE place >> 32 = :scope_no AND key_hash = :key_hash ORDER BY place;

-- name: find_live_by_key
SELECT place & 4294967295, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us
FROM items
WHERE place >> 32 = :scope_no AND key_hash = :key_hash AND deleted_seq IS NULL AND superseded_seq IS NULL
ORDER BY place;

-- name: find_live_by_text
SELECT place & 4294967295, kind, tier, timestamp_us, created_us, root_seq, deleted_seq, superseded_seq, session_hash,
    speaker_hash, key_hash, text_hash, terms, retain_us
FROM items
WHERE place >> 32 = :scope_no AND text_hash = :text_hash AND deleted_seq IS NULL AND superseded_seq IS NULL
ORDER BY place;

-- name: count_use
INSERT INTO usage (place, times, last_used_us) VALUES (?, ?, ?)
ON CONFLICT (place) DO UPDATE SET times = times + excluded.times, last_used_us = excluded.last_used_us;

-- name: find_uses
SELECT u.place & 4294967295, u.times, u.last_used_us
FROM json_each(:places) AS wanted JOIN usage AS u ON u.place = wanted.value;

-- name: drop_items
DELETE FROM items WHERE place BETWEEN :first AND :last;

-- name: drop_usage
DELETE FROM usage WHERE place BETWEEN :first AND :last;

-- name: insert_request
INSERT INTO requests (scope_no, request_hash, fingerprint, first_seq, num_events, call) VALUES (?, ?, ?, ?, ?, ?);

-- name: find_request
SELECT request_hash, fingerprint, first_seq, num_events, call FROM requests
WHERE scope_no = :scope_no AND request_hash = :request_hash;

-- name: find_tenants
SELECT name FROM tenants WHERE name > :after ORDER BY name LIMIT :limit;

-- name: read_scopes
SELECT s.scope_no, t.name, n.subject, s.ledger_id, s.next_seq, s.recorded_us, s.erased_us
FROM scopes AS s
JOIN names AS n ON n.scope_no = s.scope_no
JOIN tenants AS t ON t.tenant_no = s.tenant_no
WHERE s.scope_no > :after
ORDER BY s.scope_no LIMIT :limit;

-- name: read_scopes_of_tenant
SELECT s.scope_no, t.name, n.subject, s.ledger_id, s.next_seq, s.recorded_us, s.erased_us
FROM tenants AS t
JOIN names AS n ON n.tenant_no = t.tenant_no
JOIN scopes AS s ON s.scope_no = n.scope_no
WHERE t.name = :tenant AND s.scope_no > :after
ORDER BY s.scope_no LIMIT :limit;

-- name: read_erased_scopes
SELECT s.scope_no, coalesce(t.name, ''), NULL, s.ledger_id, s.next_seq, s.recorded_us, s.erased_us
FROM scopes AS s JOIN tenants AS t ON t.tenant_no = s.tenant_no
WHERE s.erased_us IS NOT NULL AND s.scope_no > :after
ORDER BY s.scope_no LIMIT :limit;

-- name: read_erased_scopes_of_tenant
SELECT s.scope_no, t.name, NULL, s.ledger_id, s.next_seq, s.recorded_us, s.erased_us
FROM tenants AS t JOIN scopes AS s ON s.tenant_no = t.tenant_no
WHERE t.name = :tenant AND s.erased_us IS NOT NULL AND s.scope_no > :after
ORDER BY s.scope_no LIMIT :limit;

-- name: find_head_of_ledger
SELECT scope_no, ledger_id, next_seq, edge, epoch, salt, recorded_us, erased_us
FROM scopes WHERE ledger_id = :ledger_id;

-- name: count_names_of_tenant
SELECT count(*) FROM names WHERE tenant_no = :tenant_no;

-- name: drop_tenant
UPDATE tenants SET name = NULL WHERE tenant_no = :tenant_no;

-- name: erase_content
DELETE FROM contents WHERE place = ?;

-- name: erase_item
DELETE FROM items WHERE place = ?;

-- name: erase_use
DELETE FROM usage WHERE place = ?;

-- name: blank_requests
UPDATE requests SET fingerprint = x''
WHERE scope_no = :scope_no AND first_seq BETWEEN :seq - 10000 AND :seq AND first_seq + num_events > :seq;

-- name: drop_contents
DELETE FROM contents WHERE place BETWEEN :first AND :last;

-- name: drop_requests
DELETE FROM requests WHERE scope_no = :scope_no;

-- name: drop_name
DELETE FROM names WHERE scope_no = :scope_no;

-- name: mark_erased
UPDATE scopes SET erased_us = :at_us, salt = x'' WHERE scope_no = :scope_no;

-- name: move_root
UPDATE items SET root_seq = :root_seq, created_us = :created_us WHERE place = :place;

-- name: set_use
INSERT INTO usage (place, times, last_used_us) VALUES (?, ?, ?)
ON CONFLICT (place) DO UPDATE SET times = excluded.times, last_used_us = excluded.last_used_us;

-- name: await_clean
INSERT INTO pending_clean (receipt_id, ledger_id, at_us) VALUES (?, ?, ?);

-- name: find_pending
SELECT receipt_id, ledger_id, at_us FROM pending_clean ORDER BY at_us, receipt_id;

-- name: complete_clean
DELETE FROM pending_clean WHERE receipt_id = ?;

-- name: count_orphans
SELECT (SELECT count(*) FROM contents AS c WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.place = c.place))
    + (SELECT count(*) FROM items AS i WHERE NOT EXISTS (SELECT 1 FROM contents AS c WHERE c.place = i.place))
    + (SELECT count(*) FROM vectors AS v WHERE NOT EXISTS (SELECT 1 FROM contents AS c WHERE c.place = v.place))
    + (SELECT count(*) FROM usage AS u WHERE NOT EXISTS (SELECT 1 FROM items AS i WHERE i.place = u.place));

-- name: stats
SELECT (SELECT count(*) FROM tenants WHERE name IS NOT NULL), (SELECT count(*) FROM names), (SELECT coalesce(sum(next_seq), 0) FROM scopes),
    (SELECT count(*) FROM contents), (SELECT count(*) FROM items);

-- name: keep_setting
INSERT INTO settings (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- Full text. Its tables are there unless the setting `fulltext` says `off` or is missing.

-- name: find_setting
SELECT value FROM settings WHERE name = :name;

-- name: index_text
INSERT INTO fulltext (rowid, terms)
SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM fulltext_docsize WHERE id = ?1);

-- name: unindex_text
INSERT INTO fulltext (fulltext, rowid, terms)
SELECT 'delete', ?1, ?2 WHERE EXISTS (SELECT 1 FROM fulltext_docsize WHERE id = ?1);

-- name: sum_text
SELECT coalesce(sum(t.documents), 0), coalesce(sum(t.length), 0)
FROM names AS n JOIN text_totals AS t ON t.scope_no = n.scope_no
WHERE n.tenant_no = :tenant_no AND (:kinds = -1 OR (:kinds >> t.kind) & 1);

-- name: bound_scopes
SELECT coalesce(min(scope_no), 1), coalesce(max(scope_no), 0) FROM names WHERE tenant_no = :tenant_no;

-- name: find_text
SELECT f.rowid
FROM fulltext AS f CROSS JOIN items AS i ON i.place = f.rowid
WHERE f.fulltext MATCH :term AND f.rowid BETWEEN :first AND :last
    AND f.rowid >> 32 IN (SELECT scope_no FROM names WHERE tenant_no = :tenant_no)
    AND i.deleted_seq IS NULL AND i.superseded_seq IS NULL AND (:kinds = -1 OR (:kinds >> i.kind) & 1)
ORDER BY f.rowid;

-- name: optimize_text
INSERT INTO fulltext (fulltext) VALUES ('optimize');

-- name: count_stray_text
SELECT count(*) FROM fulltext_docsize AS d WHERE NOT EXISTS (SELECT 1 FROM items AS i WHERE i.place = d.id);

-- name: count_stray_instances
SELECT count(*) FROM fulltext_instances AS f WHERE NOT EXISTS (SELECT 1 FROM items AS i WHERE i.place = f.doc);

-- name: count_missing_text
SELECT count(*) FROM items AS i WHERE NOT EXISTS (SELECT 1 FROM fulltext_docsize AS d WHERE d.id = i.place);
