PRAGMA auto_vacuum = INCREMENTAL;
BEGIN TRANSACTION;
CREATE TABLE attempts (
    record_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    started_at_ms INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    status INTEGER,
    error TEXT,
    next_attempt_at_ms INTEGER,
    response_body TEXT, error_detail TEXT,
    PRIMARY KEY (record_id, attempt)
  ) WITHOUT ROWID;
INSERT INTO "attempts" VALUES(1,1,0,1,200,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(2,1,1795345200000,7,404,NULL,NULL,'no such hook','404 Not Found');
INSERT INTO "attempts" VALUES(3,1,1795345200000,7,NULL,'connect',1795345200500,NULL,'ECONNREFUSED 127.0.0.1:9');
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY,
    sandbox INTEGER NOT NULL,
    state TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    due_ms INTEGER,
    probe_ms INTEGER,
    finished_ms INTEGER,
    finished_at_ms INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0
  );
INSERT INTO "deliveries" VALUES(1,1,'delivered',828,1795431600000,NULL,NULL,1795345200000,1795345200000,1,1);
INSERT INTO "deliveries" VALUES(2,1,'failed',828,1795431600000,NULL,NULL,1795345200000,1795345200000,1,1);
INSERT INTO "deliveries" VALUES(3,1,'pending',828,1795431600000,1795345200500,1795345200500,NULL,NULL,1,1);
INSERT INTO "deliveries" VALUES(4,1,'pending',828,1795431600000,0,NULL,NULL,NULL,0,0);
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL,
    sandbox_id TEXT,
    next_sequence INTEGER NOT NULL,
    first_id INTEGER NOT NULL,
    next_id INTEGER NOT NULL,
    is_ready INTEGER NOT NULL,
    clock_ms INTEGER NOT NULL,
    clock_wall_ms INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    boot_ms INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    delivered_bytes INTEGER NOT NULL,
    "foreign" INTEGER NOT NULL
  );
INSERT INTO "outbox" VALUES(1,1,'sb-1',5,1,5,0,1795345200000,1795345200000,'boot-1',3600000,2,1,1,0,2484,828,0);
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    sequence INTEGER,
    headers TEXT NOT NULL,
    body TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    idempotency_key TEXT,
    created_at_ms INTEGER NOT NULL
  , mac BLOB);
INSERT INTO "records" VALUES(1,'evt_01a202e9-b380-728b-b4f7-c85396d9b48d','agent.event','sb-1',1,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"4e077b39655bde0b576130611cc4227254cb729f88b0249621975a3147b154a5","ce-specversion":"1.0","ce-id":"evt_01a202e9-b380-728b-b4f7-c85396d9b48d","ce-source":"/sandboxes/sb-1","ce-type":"agent.event","ce-time":"2026-01-01T00:00:00.000Z","ce-sequence":"1"}','{"event_id":"evt_01a202e9-b380-728b-b4f7-c85396d9b48d","event_type":"agent.event","timestamp":"2026-01-01T00:00:00.000Z","sandbox_id":"sb-1","team_id":"team-1","sequence":1,"payload":{"n":1}}',4004307722,NULL,1795345200000,NULL);
INSERT INTO "records" VALUES(2,'evt_01a202e9-b380-76eb-88c9-fafbbb8e71f0','agent.event','sb-1',2,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"fca2c51ee0c491d51d1f260718be7823e9d81404f6c49874f6eda69ab5948c68","ce-specversion":"1.0","ce-id":"evt_01a202e9-b380-76eb-88c9-fafbbb8e71f0","ce-source":"/sandboxes/sb-1","ce-type":"agent.event","ce-time":"2026-01-01T00:00:00.000Z","ce-sequence":"2"}','{"event_id":"evt_01a202e9-b380-76eb-88c9-fafbbb8e71f0","event_type":"agent.event","timestamp":"2026-01-01T00:00:00.000Z","sandbox_id":"sb-1","team_id":"team-1","sequence":2,"payload":{"n":2}}',3336216672,NULL,1795345200000,NULL);
INSERT INTO "records" VALUES(3,'evt_01a202e9-b380-72fc-b168-1f870b857110','agent.event','sb-1',3,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"6b37fca7e8a9001e5db8dfb44823da924985ebc3e3fb7e5f37a88259b8653282","ce-specversion":"1.0","ce-id":"evt_01a202e9-b380-72fc-b168-1f870b857110","ce-source":"/sandboxes/sb-1","ce-type":"agent.event","ce-time":"2026-01-01T00:00:00.000Z","ce-sequence":"3"}','{"event_id":"evt_01a202e9-b380-72fc-b168-1f870b857110","event_type":"agent.event","timestamp":"2026-01-01T00:00:00.000Z","sandbox_id":"sb-1","team_id":"team-1","sequence":3,"payload":{"n":3}}',2491073295,NULL,1795345200000,NULL);
INSERT INTO "records" VALUES(4,'evt_01a202e9-b380-711c-a514-20312cf2bc4f','agent.event','sb-1',4,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"3a36fd36eb1fa40976a8ef170a7c90e91da122721282e13d48642c0624293b18","ce-specversion":"1.0","ce-id":"evt_01a202e9-b380-711c-a514-20312cf2bc4f","ce-source":"/sandboxes/sb-1","ce-type":"agent.event","ce-time":"2026-01-01T00:00:00.000Z","ce-sequence":"4"}','{"event_id":"evt_01a202e9-b380-711c-a514-20312cf2bc4f","event_type":"agent.event","timestamp":"2026-01-01T00:00:00.000Z","sandbox_id":"sb-1","team_id":"team-1","sequence":4,"payload":{"n":4}}',2984421151,NULL,1795345200000,NULL);
CREATE TABLE sandboxes (
    number INTEGER PRIMARY KEY,
    sandbox_id TEXT NOT NULL,
    next_sequence INTEGER NOT NULL,
    is_ready INTEGER NOT NULL,
    left_ms INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    delivered_bytes INTEGER NOT NULL
  );
CREATE TABLE tree (id INTEGER PRIMARY KEY, entry TEXT NOT NULL);
CREATE UNIQUE INDEX records_event_id ON records (event_id);
CREATE UNIQUE INDEX records_idempotency_key ON records (sandbox_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX sandboxes_sandbox_id ON sandboxes (sandbox_id);
CREATE INDEX deliveries_due ON deliveries (sandbox, due_ms) WHERE due_ms > 0;
CREATE INDEX deliveries_deadline ON deliveries (sandbox, deadline_ms) WHERE due_ms > 0;
CREATE INDEX deliveries_probe ON deliveries (sandbox, probe_ms) WHERE due_ms > 0;
CREATE INDEX deliveries_finished ON deliveries (sandbox, state, finished_ms) WHERE due_ms IS NULL;
COMMIT;
PRAGMA user_version = 3;
