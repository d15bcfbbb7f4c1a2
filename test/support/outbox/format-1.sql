PRAGMA auto_vacuum = INCREMENTAL;
BEGIN TRANSACTION;
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
  );
INSERT INTO records VALUES(1,'evt_01a2029f-d3c0-7099-93d4-4494e56eaec2','sandbox.ready','sb-1',1,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"d4c3b3b8a944bcf3862e5ebf7072c474f8aca24f2cd99b010920b46ef94e304c","ce-specversion":"1.0","ce-id":"evt_01a2029f-d3c0-7099-93d4-4494e56eaec2","ce-source":"/sandboxes/sb-1","ce-type":"sandbox.ready","ce-time":"2026-11-22T09:39:18.591Z","ce-sequence":"1"}','{"event_id":"evt_01a2029f-d3c0-7099-93d4-4494e56eaec2","event_type":"sandbox.ready","timestamp":"2026-11-22T09:39:18.591Z","sandbox_id":"sb-1","team_id":"t","sequence":1,"payload":{"http_port":18802,"version":"0.1.0","watch_dir":null}}',3071069088,NULL,1795340358593);
INSERT INTO records VALUES(2,'evt_01a2029f-d603-720e-9e0c-4761568c6358','agent.event','sb-1',2,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"0a668b1ceb4534f8e87e183d168ccce7aa8dcceef472e8a0de10146c59d5f6a0","ce-specversion":"1.0","ce-id":"evt_01a2029f-d603-720e-9e0c-4761568c6358","ce-source":"/sandboxes/sb-1","ce-type":"agent.event","ce-time":"2026-11-22T09:39:19.164Z","ce-sequence":"2"}','{"event_id":"evt_01a2029f-d603-720e-9e0c-4761568c6358","event_type":"agent.event","timestamp":"2026-11-22T09:39:19.164Z","sandbox_id":"sb-1","team_id":"t","sequence":2,"payload":{"n":1}}',4031696930,NULL,1795340359171);
INSERT INTO records VALUES(3,'evt_01a2029f-d61e-74ac-afb8-01c157e7e709','agent.event','sb-1',3,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"6acf516e90b47f0d083bcd89719fe8bc07975f7f188acbac21d402a4092e9467","ce-specversion":"1.0","ce-id":"evt_01a2029f-d61e-74ac-afb8-01c157e7e709","ce-source":"/sandboxes/sb-1","ce-type":"agent.event","ce-time":"2026-11-22T09:39:19.198Z","ce-sequence":"3"}','{"event_id":"evt_01a2029f-d61e-74ac-afb8-01c157e7e709","event_type":"agent.event","timestamp":"2026-11-22T09:39:19.198Z","sandbox_id":"sb-1","team_id":"t","sequence":3,"payload":{"n":2,"status":400}}',1371284069,NULL,1795340359198);
INSERT INTO records VALUES(4,'evt_01a2029f-d64e-76b8-9ce5-56fc31899f70','agent.event','sb-1',4,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"a45e756ecc5d15203b3ba5bf25f6659a110f9c9443cf66c954b2efa2fe3fe636","ce-specversion":"1.0","ce-id":"evt_01a2029f-d64e-76b8-9ce5-56fc31899f70","ce-source":"/sandboxes/sb-1","ce-type":"agent.event","ce-time":"2026-11-22T09:39:19.245Z","ce-sequence":"4"}','{"event_id":"evt_01a2029f-d64e-76b8-9ce5-56fc31899f70","event_type":"agent.event","timestamp":"2026-11-22T09:39:19.245Z","sandbox_id":"sb-1","team_id":"t","sequence":4,"payload":{"n":3,"status":503}}',3548305778,NULL,1795340359246);
INSERT INTO records VALUES(5,'evt_01a2029f-db36-73dc-b112-3d25dd514f1f','sandbox.ready','sb-2',1,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"f312210979699f3c250f9da26bd4407327667597a8698aeeb14a7a2d9ed47656","ce-specversion":"1.0","ce-id":"evt_01a2029f-db36-73dc-b112-3d25dd514f1f","ce-source":"/sandboxes/sb-2","ce-type":"sandbox.ready","ce-time":"2026-11-22T09:39:20.501Z","ce-sequence":"1"}','{"event_id":"evt_01a2029f-db36-73dc-b112-3d25dd514f1f","event_type":"sandbox.ready","timestamp":"2026-11-22T09:39:20.501Z","sandbox_id":"sb-2","team_id":"t","sequence":1,"payload":{"http_port":18802,"version":"0.1.0","watch_dir":null}}',3140388584,NULL,1795340360506);
INSERT INTO records VALUES(6,'evt_01a2029f-dd03-7180-857e-365b828f9482','agent.event','sb-2',2,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"9e5cccfee4223a1dcf07a9eaaa796f00c47ef1a2720ce14e38bea7d3b94c827c","ce-specversion":"1.0","ce-id":"evt_01a2029f-dd03-7180-857e-365b828f9482","ce-source":"/sandboxes/sb-2","ce-type":"agent.event","ce-time":"2026-11-22T09:39:20.940Z","ce-sequence":"2"}','{"event_id":"evt_01a2029f-dd03-7180-857e-365b828f9482","event_type":"agent.event","timestamp":"2026-11-22T09:39:20.940Z","sandbox_id":"sb-2","team_id":"t","sequence":2,"payload":{"n":4}}',2731035877,NULL,1795340360964);
INSERT INTO records VALUES(7,'evt_01a2029f-dfc6-769d-90fd-a5621f6154e0','sandbox.ready','sb-1',1,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"3aae882b2767334e165aa8588ba02e2f9a694ab9e290cfd70ee563768948ac42","ce-specversion":"1.0","ce-id":"evt_01a2029f-dfc6-769d-90fd-a5621f6154e0","ce-source":"/sandboxes/sb-1","ce-type":"sandbox.ready","ce-time":"2026-11-22T09:39:21.668Z","ce-sequence":"1"}','{"event_id":"evt_01a2029f-dfc6-769d-90fd-a5621f6154e0","event_type":"sandbox.ready","timestamp":"2026-11-22T09:39:21.668Z","sandbox_id":"sb-1","team_id":"t","sequence":1,"payload":{"http_port":18802,"version":"0.1.0","watch_dir":null}}',571242471,NULL,1795340361671);
INSERT INTO records VALUES(8,'evt_01a2029f-e12d-7113-9aa5-070df74c36bf','agent.event','sb-1',2,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"8a9a1fa5e5860e927c313f1cffbcc4b45be516b251cb34421b5d17e3af6795c1","ce-specversion":"1.0","ce-id":"evt_01a2029f-e12d-7113-9aa5-070df74c36bf","ce-source":"/sandboxes/sb-1","ce-type":"agent.event","ce-time":"2026-11-22T09:39:22.026Z","ce-sequence":"2"}','{"event_id":"evt_01a2029f-e12d-7113-9aa5-070df74c36bf","event_type":"agent.event","timestamp":"2026-11-22T09:39:22.026Z","sandbox_id":"sb-1","team_id":"t","sequence":2,"payload":{"n":5}}',3790215640,NULL,1795340362029);
INSERT INTO records VALUES(9,'evt_01a2029f-e162-744c-a2cf-53aa5d28e4bd','agent.event','sb-1',3,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"28a0681bfdd636bcf588877c5d498d40ce9b6997a98484712ff2f2e0899e26f9","ce-specversion":"1.0","ce-id":"evt_01a2029f-e162-744c-a2cf-53aa5d28e4bd","ce-source":"/sandboxes/sb-1","ce-type":"agent.event","ce-time":"2026-11-22T09:39:22.082Z","ce-sequence":"3"}','{"event_id":"evt_01a2029f-e162-744c-a2cf-53aa5d28e4bd","event_type":"agent.event","timestamp":"2026-11-22T09:39:22.082Z","sandbox_id":"sb-1","team_id":"t","sequence":3,"payload":{"n":6,"status":503}}',2599128107,NULL,1795340362083);
INSERT INTO records VALUES(10,'evt_01a2029f-e43b-77f7-8377-30ac0abe6672','sandbox.killed','sb-1',4,'{"Content-Type":"application/json","User-Agent":"sandboxd/0.1.0","X-Service-Signature":"6025a22d8a32dcb1da69cf50b4148dcea48c52430612d8a6f6dbe4a71ab7f2d6","ce-specversion":"1.0","ce-id":"evt_01a2029f-e43b-77f7-8377-30ac0abe6672","ce-source":"/sandboxes/sb-1","ce-type":"sandbox.killed","ce-time":"2026-11-22T09:39:22.811Z","ce-sequence":"4"}','{"event_id":"evt_01a2029f-e43b-77f7-8377-30ac0abe6672","event_type":"sandbox.killed","timestamp":"2026-11-22T09:39:22.811Z","sandbox_id":"sb-1","team_id":"t","sequence":4,"payload":{"reason":"signal","signal":"SIGTERM","uptime_ms":1179}}',514950358,NULL,1795340362812);
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY,
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
INSERT INTO deliveries VALUES(1,'foreign',874,1795426758593,NULL,NULL,1795340360480,1795340359171,1,1);
INSERT INTO deliveries VALUES(2,'foreign',823,1795426759171,NULL,NULL,1795340360480,1795340359189,1,1);
INSERT INTO deliveries VALUES(3,'foreign',836,1795426759198,NULL,NULL,1795340360480,1795340359427,1,1);
INSERT INTO deliveries VALUES(4,'foreign',836,1795426759246,NULL,NULL,1795340360480,1795340360480,2,2);
INSERT INTO deliveries VALUES(5,'foreign',874,1795426760506,NULL,NULL,1795340361656,1795340361656,2,2);
INSERT INTO deliveries VALUES(6,'foreign',823,1795426760964,NULL,NULL,1795340361656,1795340361656,1,1);
INSERT INTO deliveries VALUES(7,'delivered',874,1795426761671,NULL,NULL,1795340361962,1795340361962,1,1);
INSERT INTO deliveries VALUES(8,'delivered',823,1795426762029,NULL,NULL,1795340362057,1795340362057,1,1);
INSERT INTO deliveries VALUES(9,'pending',836,1795426762083,1795340363516,1795340363516,NULL,NULL,2,2);
INSERT INTO deliveries VALUES(10,'delivered',877,1795426762812,NULL,NULL,1795340362852,1795340362852,1,1);
CREATE TABLE attempts (
    record_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    started_at_ms INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    status INTEGER,
    error TEXT,
    next_attempt_at_ms INTEGER,
    response_body TEXT,
    PRIMARY KEY (record_id, attempt)
  ) WITHOUT ROWID;
INSERT INTO attempts VALUES(1,1,1795340358596,563,204,NULL,NULL,NULL);
INSERT INTO attempts VALUES(2,1,1795340359174,9,204,NULL,NULL,NULL);
INSERT INTO attempts VALUES(3,1,1795340359202,87,400,NULL,NULL,'hm');
INSERT INTO attempts VALUES(4,1,1795340359249,40,503,NULL,1795340359812,'hm');
INSERT INTO attempts VALUES(4,2,1795340359818,4,503,NULL,1795340360922,'hm');
INSERT INTO attempts VALUES(5,1,1795340360511,201,NULL,'connect',1795340361208,NULL);
INSERT INTO attempts VALUES(5,2,1795340361212,1,NULL,'connect',1795340362203,NULL);
INSERT INTO attempts VALUES(6,1,1795340360970,4,NULL,'connect',1795340361553,NULL);
INSERT INTO attempts VALUES(7,1,1795340361673,179,204,NULL,NULL,NULL);
INSERT INTO attempts VALUES(8,1,1795340362034,3,204,NULL,NULL,NULL);
INSERT INTO attempts VALUES(9,1,1795340362087,4,503,NULL,1795340362612,'hm');
INSERT INTO attempts VALUES(9,2,1795340362615,2,503,NULL,1795340363516,'hm');
INSERT INTO attempts VALUES(10,1,1795340362840,6,204,NULL,NULL,NULL);
CREATE TABLE tree (id INTEGER PRIMARY KEY, entry TEXT NOT NULL);
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sandbox_id TEXT,
    next_sequence INTEGER NOT NULL,
    next_id INTEGER NOT NULL,
    is_ready INTEGER NOT NULL,
    clock_ms INTEGER NOT NULL,
    clock_wall_ms INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    "foreign" INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  );
INSERT INTO outbox VALUES(1,'sb-1',5,11,0,1795340362852,1795340362852,1,3,0,0,6,836);
CREATE UNIQUE INDEX records_event_id ON records (event_id);
CREATE UNIQUE INDEX records_idempotency_key ON records (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX deliveries_due ON deliveries (due_ms) WHERE due_ms > 0;
CREATE INDEX deliveries_deadline ON deliveries (deadline_ms) WHERE due_ms > 0;
CREATE INDEX deliveries_probe ON deliveries (probe_ms) WHERE due_ms > 0;
CREATE INDEX deliveries_finished ON deliveries (state, finished_ms) WHERE due_ms IS NULL;
COMMIT;
PRAGMA user_version = 1;
