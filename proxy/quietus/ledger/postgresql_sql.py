"""Every statement of the PostgreSQL ledger, and its migrations.

A commit is one call of a function: nothing is held between two messages, so that a process that is frozen
holds up nobody. `{q}` is the schema that the ledger lies in, quoted.

A migration only adds, so that a replica of the version before goes on beside one of this version. What would
break it is done by `finalise`, which raises the floor: from then on an older Quietus is refused.
"""

from __future__ import annotations

from typing import Final

SCHEMA: Final = 1
"""The newest schema that this code reads and writes."""

_FIRST: Final = """
CREATE TABLE {q}.ledger (
  id integer PRIMARY KEY CHECK (id = 1), incarnation text NOT NULL, key_ids text NOT NULL,
  number bigint NOT NULL, hash bytea NOT NULL, gate_epoch bigint NOT NULL,
  schema integer NOT NULL, floor integer NOT NULL, life text NOT NULL);
CREATE TABLE {q}.events (
  number bigint PRIMARY KEY, type text NOT NULL, erasure text NOT NULL, at double precision NOT NULL,
  actor text NOT NULL, facts text NOT NULL, gate boolean NOT NULL, hash bytea NOT NULL);
CREATE INDEX events_of_erasure ON {q}.events (erasure, number);
CREATE TABLE {q}.marks (
  erasure text NOT NULL, number bigint NOT NULL, packed bytea NOT NULL, PRIMARY KEY (erasure, number));
CREATE TABLE {q}.secrets (
  erasure text NOT NULL, name text NOT NULL, sealed bytea NOT NULL, PRIMARY KEY (erasure, name));
CREATE TABLE {q}.replicas (
  session text PRIMARY KEY, beat bigint NOT NULL, number bigint NOT NULL, seconds double precision NOT NULL,
  undrained bigint[] NOT NULL);
CREATE TABLE {q}.work (erasure text PRIMARY KEY, generation bigint NOT NULL, session text NOT NULL);

CREATE FUNCTION {q}.append_1(
  its_session text, before bigint, was bytea, numbers bigint[], types text[], erasures text[],
  ats double precision[], actors text[], facts_ text[], gates boolean[], hashes bytea[],
  after bigint, is_now bytea, epoch bigint, unmarked text[],
  mark_erasures text[], mark_numbers bigint[], packs bytea[],
  secret_erasures text[], secret_names text[], secret_bytes bytea[],
  fence_erasures text[], fence_generations bigint[], claims text[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {q}.ledger SET number = after, hash = is_now, gate_epoch = epoch
    WHERE id = 1 AND number = before AND hash = was;
  IF NOT FOUND THEN RETURN 'moved'; END IF;
  IF its_session <> '' THEN
    PERFORM 1 FROM {q}.replicas WHERE session = its_session FOR KEY SHARE;
    IF NOT FOUND THEN RAISE EXCEPTION 'quietus: unlisted' USING ERRCODE = 'QU001'; END IF;
  END IF;
  PERFORM 1 FROM unnest(fence_erasures, fence_generations) AS f (e, g)
    WHERE NOT EXISTS (SELECT 1 FROM {q}.work w
      WHERE w.erasure = f.e AND w.generation = f.g AND w.session = its_session FOR SHARE);
  IF FOUND THEN RAISE EXCEPTION 'quietus: fenced' USING ERRCODE = 'QU002'; END IF;
  INSERT INTO {q}.work (erasure, generation, session) SELECT e, 1, its_session FROM unnest(claims) AS c (e)
    ON CONFLICT (erasure) DO NOTHING;
  INSERT INTO {q}.events SELECT * FROM unnest(numbers, types, erasures, ats, actors, facts_, gates, hashes);
  DELETE FROM {q}.marks WHERE erasure = ANY (unmarked);
  INSERT INTO {q}.marks SELECT * FROM unnest(mark_erasures, mark_numbers, packs);
  INSERT INTO {q}.secrets SELECT * FROM unnest(secret_erasures, secret_names, secret_bytes)
    ON CONFLICT (erasure, name) DO UPDATE SET sealed = excluded.sealed;
  PERFORM pg_notify({n}, 'e');
  RETURN '';
END $$;

CREATE FUNCTION {q}.renew_1(its_session text, reached bigint, undrained_ bigint[])
  RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE was record;
BEGIN
  SELECT number, undrained INTO was FROM {q}.replicas WHERE session = its_session FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE {q}.replicas SET beat = beat + 1, number = reached, undrained = undrained_
    WHERE session = its_session;
  IF was.number <> reached OR was.undrained <> undrained_ THEN PERFORM pg_notify({n}, 'r'); END IF;
  RETURN true;
END $$;

CREATE FUNCTION {q}.claim_1(its_session text, its_erasure text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE given bigint;
BEGIN
  PERFORM 1 FROM {q}.replicas WHERE session = its_session FOR KEY SHARE;
  IF NOT FOUND THEN RETURN -1; END IF;
  INSERT INTO {q}.work AS w (erasure, generation, session) VALUES (its_erasure, 1, its_session)
    ON CONFLICT (erasure) DO UPDATE SET session = excluded.session,
      generation = w.generation + CASE WHEN w.session = excluded.session THEN 0 ELSE 1 END
      WHERE w.session = excluded.session
        OR NOT EXISTS (SELECT 1 FROM {q}.replicas r WHERE r.session = w.session)
    RETURNING generation INTO given;
  RETURN coalesce(given, 0);
END $$;
"""

MIGRATIONS: Final[tuple[str, ...]] = (_FIRST,)
"""What brings a ledger from the schema of its place to the next; each only adds."""

CREATE_SCHEMA: Final = "CREATE SCHEMA IF NOT EXISTS {q}"
LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext({n}))"
EXISTS: Final = "SELECT to_regclass({n} || '.ledger') IS NOT NULL"
NEW_LEDGER: Final = "INSERT INTO {q}.ledger VALUES (1, $1, '[]', 0, $2, 0, $3, $3, {life})"
VERSION: Final = "SELECT schema, floor FROM {q}.ledger"
SET_VERSION: Final = "UPDATE {q}.ledger SET schema = $1"
FINALISE: Final = "UPDATE {q}.ledger SET floor = schema"

LIFE: Final = (
    "(SELECT (pg_control_system()).system_identifier || '/' || (pg_control_checkpoint()).timeline_id "
    "|| '/' || extract(epoch FROM pg_postmaster_start_time()))"
)
_LEDGER: Final = (
    "l.incarnation, l.number, l.hash, l.gate_epoch, l.key_ids, l.schema, l.floor, "
    "(SELECT coalesce(max(number), 0) FROM {q}.events)"
)
STANDING: Final = (
    f"SELECT {_LEDGER}, ARRAY(SELECT coalesce("
    "(SELECT max(number) FROM {q}.events e WHERE e.erasure = n), 0) "
    "FROM unnest($1::text[]) WITH ORDINALITY AS a (n, place) ORDER BY place) FROM {q}.ledger l"
)
MUSTER: Final = (
    f"SELECT {_LEDGER}, {LIFE}, l.life, "
    "coalesce((SELECT jsonb_agg(jsonb_build_array(session, beat, number, seconds, undrained)) "
    "FROM {q}.replicas), '[]') FROM {q}.ledger l"
)
APPEND: Final = f"SELECT {{q}}.append_1({', '.join(f'${n}' for n in range(1, 25))})"
BIND: Final = (
    "UPDATE {q}.ledger SET key_ids = $2, hash = $3 "
    "WHERE number = 0 AND hash = $1 AND key_ids = '[]' RETURNING 1"
)

_COLUMNS: Final = "number, type, erasure, at, actor, facts, gate, hash"
ROWS: Final = f"SELECT {_COLUMNS} FROM {{q}}.events WHERE number > $1 ORDER BY number LIMIT $2"
ROWS_OF: Final = (
    f"SELECT {', '.join('e.' + name for name in _COLUMNS.split(', '))}, p.hash AS before "
    "FROM {q}.events e LEFT JOIN {q}.events p ON p.number = e.number - 1 "
    "WHERE e.erasure = $1 AND e.number > $2 ORDER BY e.number LIMIT $3"
)
MARKED: Final = "SELECT DISTINCT erasure FROM {q}.marks"
MARKS_OF: Final = (
    "SELECT a.place, m.packed FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS a (e, n, place) "
    "JOIN {q}.marks m ON m.erasure = a.e AND (a.n IS NULL OR m.number = a.n) ORDER BY a.place, m.number"
)
SECRET: Final = "SELECT sealed FROM {q}.secrets WHERE erasure = $1 AND name = $2"
SECRET_NAMES: Final = "SELECT name FROM {q}.secrets WHERE erasure = $1"
DROP_SECRETS: Final = "DELETE FROM {q}.secrets WHERE erasure = $1 RETURNING 1"
VACUUM: Final = "VACUUM {q}.secrets"

JOIN: Final = "INSERT INTO {q}.replicas VALUES ($1, 1, 0, $2, '{}') ON CONFLICT (session) DO NOTHING"
RENEW: Final = "SELECT {q}.renew_1($1, $2, $3)"
EXPEL: Final = "DELETE FROM {q}.replicas WHERE session = $1 AND beat = $2 RETURNING 1"
LISTED: Final = "SELECT 1 FROM {q}.replicas WHERE session = $1"
LEAVE: Final = "DELETE FROM {q}.replicas WHERE session = $1"
NOTIFY: Final = "SELECT pg_notify({n}, 'r')"
CLAIM: Final = "SELECT {q}.claim_1($1, $2)"
RELEASE: Final = "DELETE FROM {q}.work WHERE session = $1 AND erasure = $2"
SETTLE_LIFE: Final = "UPDATE {q}.ledger SET life = $1"

SETTINGS: Final = (
    "SELECT current_setting('fsync'), current_setting('full_page_writes'), "
    "current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), "
    "pg_is_in_recovery(), (SELECT count(*) FROM pg_stat_replication)"
)
