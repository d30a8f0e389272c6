-- Written by tests/store/first_migration.py.
CREATE TABLE accepted_lines (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    verdict TEXT NOT NULL,
    state TEXT NOT NULL,
    votes JSON NOT NULL,
    line JSON NOT NULL,
    changed_at DOUBLE NOT NULL,
    expires_at DOUBLE,
    PRIMARY KEY (id)
);
CREATE INDEX accepted_lines_of_user ON accepted_lines (user_id, state);
CREATE TABLE adopted_effects (
    run TEXT NOT NULL,
    n INTEGER NOT NULL,
    effect_id TEXT NOT NULL,
    step INTEGER NOT NULL,
    PRIMARY KEY (run, n)
);
CREATE UNIQUE INDEX adopted_effects_by_effect ON adopted_effects (effect_id, run);
CREATE TABLE connections (
    user_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    state TEXT NOT NULL,
    wanted TEXT NOT NULL,
    connected_at DOUBLE NOT NULL,
    refreshed_at DOUBLE NOT NULL,
    ends_at DOUBLE,
    lease DOUBLE NOT NULL,
    token TEXT NOT NULL,
    sealed BLOB,
    PRIMARY KEY (user_id, provider)
);
CREATE TABLE decisions (
    run TEXT NOT NULL,
    n INTEGER NOT NULL,
    at TEXT NOT NULL,
    body JSON NOT NULL,
    PRIMARY KEY (run, n, at)
);
CREATE TABLE deliveries (
    receiver TEXT NOT NULL,
    position INTEGER NOT NULL,
    stream TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    state TEXT NOT NULL,
    tries INTEGER NOT NULL,
    due_at DOUBLE NOT NULL,
    lease DOUBLE NOT NULL,
    token TEXT NOT NULL,
    written_at DOUBLE NOT NULL,
    PRIMARY KEY (receiver, position)
);
CREATE INDEX deliveries_due ON deliveries (state, receiver, due_at);
CREATE INDEX deliveries_in_order ON deliveries (receiver, stream, state, sequence);
CREATE TABLE deltas (
    run TEXT NOT NULL,
    position BIGINT NOT NULL,
    stream BIGINT NOT NULL,
    step INTEGER NOT NULL,
    text TEXT NOT NULL,
    at DOUBLE NOT NULL,
    PRIMARY KEY (run, position)
);
CREATE INDEX deltas_by_age ON deltas (at);
CREATE TABLE effects (
    effect_id TEXT NOT NULL,
    run TEXT NOT NULL,
    n INTEGER NOT NULL,
    undo BOOLEAN NOT NULL,
    tool TEXT NOT NULL,
    args_digest TEXT NOT NULL,
    state TEXT NOT NULL,
    send INTEGER NOT NULL,
    token TEXT NOT NULL,
    lease DOUBLE NOT NULL,
    step INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    result_ref TEXT,
    outcome TEXT,
    undo_tool TEXT,
    undo_sealed TEXT,
    undo_shown TEXT,
    arguments_sealed TEXT,
    task_sealed TEXT,
    authority JSON,
    first_sent_at DOUBLE NOT NULL,
    updated_at DOUBLE NOT NULL,
    PRIMARY KEY (effect_id)
);
CREATE INDEX effects_of_run ON effects (run, n);
CREATE INDEX effects_unanswered ON effects (effect_id) WHERE state IN ('unknown', 'dispatched');
CREATE TABLE endpoint_pauses (
    endpoint TEXT NOT NULL,
    until DOUBLE NOT NULL,
    PRIMARY KEY (endpoint)
);
CREATE TABLE events (
    run TEXT NOT NULL,
    n INTEGER NOT NULL,
    at TEXT NOT NULL,
    name TEXT NOT NULL,
    effect INTEGER,
    body JSON NOT NULL,
    outcome JSON,
    PRIMARY KEY (run, n)
);
CREATE TABLE ledger_heads (
    run TEXT NOT NULL,
    n INTEGER NOT NULL,
    hash TEXT NOT NULL,
    salt TEXT NOT NULL,
    signed_n INTEGER NOT NULL,
    signed_hash TEXT NOT NULL,
    at TEXT NOT NULL,
    "key" TEXT NOT NULL,
    signature TEXT NOT NULL,
    rooted INTEGER NOT NULL,
    PRIMARY KEY (run)
);
CREATE TABLE ledger_roots (
    n INTEGER NOT NULL,
    day TEXT NOT NULL,
    at TEXT NOT NULL,
    heads TEXT NOT NULL,
    hash TEXT NOT NULL,
    "key" TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (n)
);
CREATE TABLE ledger_rows (
    run TEXT NOT NULL,
    n INTEGER NOT NULL,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    digest TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (run, n)
);
CREATE TABLE looks (
    workflow_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    reader TEXT NOT NULL,
    person TEXT NOT NULL,
    until DOUBLE NOT NULL,
    PRIMARY KEY (workflow_id, request_id, reader)
);
CREATE INDEX looks_by_age ON looks (until);
CREATE TABLE memory_items (
    position INTEGER NOT NULL,
    run TEXT NOT NULL,
    n INTEGER NOT NULL,
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    tool TEXT NOT NULL,
    ref TEXT NOT NULL,
    source TEXT NOT NULL,
    written_by TEXT NOT NULL,
    approved_by TEXT NOT NULL,
    session_id TEXT,
    at DOUBLE NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (position)
);
CREATE INDEX memory_items_of_owner ON memory_items (owner, at);
CREATE UNIQUE INDEX memory_items_of_run ON memory_items (run, n, kind);
CREATE TABLE oauth_clients (
    provider TEXT NOT NULL,
    issuer TEXT NOT NULL,
    return_to TEXT NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (provider, issuer, return_to)
);
CREATE TABLE outbox (
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    run TEXT NOT NULL,
    stream TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    created_at DOUBLE NOT NULL,
    body JSON NOT NULL,
    PRIMARY KEY (position),
    UNIQUE (id)
);
CREATE INDEX outbox_by_age ON outbox (created_at);
CREATE INDEX outbox_by_stream ON outbox (stream, position);
CREATE TABLE own_servers (
    provider TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    added_at DOUBLE NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (provider)
);
CREATE UNIQUE INDEX own_servers_by_user ON own_servers (user_id, name);
CREATE TABLE parked_undos (
    run TEXT NOT NULL,
    effect INTEGER NOT NULL,
    PRIMARY KEY (run, effect)
);
CREATE TABLE payloads (
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (run, name)
);
CREATE TABLE plans (
    run TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    state TEXT NOT NULL,
    body JSON NOT NULL,
    proposal JSON NOT NULL,
    ended JSON,
    created_at DOUBLE NOT NULL,
    updated_at DOUBLE NOT NULL,
    PRIMARY KEY (run, plan_id)
);
CREATE TABLE posts (
    receiver TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    run TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    ts TEXT NOT NULL,
    drawn DOUBLE NOT NULL,
    event INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    lease DOUBLE NOT NULL,
    token TEXT NOT NULL,
    touched_at DOUBLE NOT NULL,
    PRIMARY KEY (receiver, name)
);
CREATE INDEX posts_by_kind ON posts (receiver, kind, touched_at);
CREATE INDEX posts_of_request ON posts (receiver, workflow_id, run_id, request_id);
CREATE TABLE receivers (
    name TEXT NOT NULL,
    since DOUBLE NOT NULL,
    seen_at DOUBLE NOT NULL,
    PRIMARY KEY (name)
);
CREATE TABLE requests (
    position INTEGER NOT NULL,
    workflow_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    run TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT,
    state TEXT NOT NULL,
    request JSON NOT NULL,
    decision JSON,
    words TEXT NOT NULL,
    opened_at DOUBLE NOT NULL,
    changed_at DOUBLE NOT NULL,
    expires_at DOUBLE,
    checked_at DOUBLE NOT NULL,
    readers TEXT NOT NULL,
    kind TEXT NOT NULL,
    alike TEXT NOT NULL,
    reminded INTEGER DEFAULT '0' NOT NULL,
    reminded_at DOUBLE,
    PRIMARY KEY (position)
);
CREATE INDEX requests_alike ON requests (alike, state);
CREATE INDEX requests_by_change ON requests (changed_at);
CREATE INDEX requests_by_name ON requests (workflow_id, request_id, run_id);
CREATE INDEX requests_by_state ON requests (state, position);
CREATE TABLE run_chain (
    workflow_id TEXT NOT NULL,
    workflow_run_id TEXT NOT NULL,
    run TEXT NOT NULL,
    PRIMARY KEY (workflow_id, workflow_run_id)
);
CREATE TABLE runs (
    run TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    workflow_run_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL,
    opened_at DOUBLE NOT NULL,
    closed_at DOUBLE,
    opened JSON NOT NULL,
    store TEXT NOT NULL,
    outcome TEXT,
    result JSON,
    pruned_at DOUBLE,
    session_id TEXT,
    follows TEXT,
    context TEXT,
    metadata JSON,
    checked_at DOUBLE NOT NULL,
    lost_at DOUBLE,
    PRIMARY KEY (run)
);
CREATE INDEX runs_by_age ON runs (opened_at);
CREATE INDEX runs_by_followed ON runs (follows);
CREATE INDEX runs_of_user ON runs (user_id, opened_at);
CREATE INDEX runs_of_workflow ON runs (workflow_id, opened_at);
CREATE INDEX runs_unchecked ON runs (checked_at) WHERE state = 'open' AND lost_at IS NULL;
CREATE TABLE secret_handles (
    run TEXT NOT NULL,
    handle TEXT NOT NULL,
    provider TEXT NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (run, handle)
);
CREATE TABLE sign_ins (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    until DOUBLE NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX sign_ins_by_age ON sign_ins (until);
CREATE TABLE standing_tasks (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body JSON NOT NULL,
    paused TEXT NOT NULL,
    sealed_key BLOB,
    added_at DOUBLE NOT NULL,
    PRIMARY KEY (kind, name)
);
CREATE TABLE starts (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    event TEXT NOT NULL,
    signature TEXT NOT NULL,
    sealed_input BLOB,
    state TEXT NOT NULL,
    told TEXT NOT NULL,
    day TEXT NOT NULL,
    micro BIGINT NOT NULL,
    run TEXT NOT NULL,
    at DOUBLE NOT NULL,
    ended_at DOUBLE,
    PRIMARY KEY (id)
);
CREATE INDEX starts_by_signature ON starts (kind, name, signature);
CREATE INDEX starts_by_time ON starts (kind, name, at);
CREATE INDEX starts_of_day ON starts (kind, name, day);
CREATE TABLE store_identity (
    "row" INTEGER NOT NULL,
    id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    temporal_epoch INTEGER NOT NULL,
    secret BLOB NOT NULL,
    PRIMARY KEY ("row")
);
CREATE TABLE subruns (
    workflow_id TEXT NOT NULL,
    parent TEXT NOT NULL,
    n INTEGER NOT NULL,
    step INTEGER NOT NULL,
    task_digest TEXT NOT NULL,
    context TEXT NOT NULL,
    share JSON NOT NULL,
    private JSON NOT NULL,
    run TEXT,
    spent JSON,
    PRIMARY KEY (workflow_id)
);
CREATE INDEX subruns_by_run ON subruns (run);
CREATE INDEX subruns_of_parent ON subruns (parent, n);
CREATE TABLE tool_definitions (
    tool TEXT NOT NULL,
    digest TEXT NOT NULL,
    said JSON NOT NULL,
    allowed_by TEXT NOT NULL,
    allowed_at DOUBLE NOT NULL,
    PRIMARY KEY (tool, digest)
);
CREATE TABLE used_proofs (
    nonce TEXT NOT NULL,
    run TEXT NOT NULL,
    used_by TEXT NOT NULL,
    expires DOUBLE NOT NULL,
    PRIMARY KEY (nonce)
);
CREATE INDEX used_proofs_by_expiry ON used_proofs (expires);
CREATE TABLE watches (
    run TEXT NOT NULL,
    reader TEXT NOT NULL,
    until DOUBLE NOT NULL,
    PRIMARY KEY (run, reader)
);
CREATE TABLE worker_fingerprints (
    what TEXT NOT NULL,
    place INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    recorded_at DOUBLE NOT NULL,
    PRIMARY KEY (what, place)
);
CREATE VIRTUAL TABLE memory_index USING fts5(owner, words, tokenize = 'ascii');
