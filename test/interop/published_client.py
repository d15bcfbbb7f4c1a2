"""Drives a manager by the published client of this API's family, unchanged: every call that test/interop/README.md lists."""

import json
import os
import time

from sandbox0 import APIError, Client, CmdOptions, QuotaDimension, StreamInput, verify_webhook_signature
from sandbox0.apispec.models.create_cmd_context_request import CreateCMDContextRequest
from sandbox0.apispec.models.create_context_request import CreateContextRequest
from sandbox0.apispec.models.process_type import ProcessType
from sandbox0.apispec.models.pty_size import PTYSize
from sandbox0.apispec.models.sandbox_config import SandboxConfig
from sandbox0.apispec.models.sandbox_lifecycle_status import SandboxLifecycleStatus
from sandbox0.apispec.models.sandbox_network_policy import SandboxNetworkPolicy
from sandbox0.apispec.models.sandbox_network_policy_mode import SandboxNetworkPolicyMode
from sandbox0.apispec.models.sandbox_refresh_request import SandboxRefreshRequest
from sandbox0.apispec.models.sandbox_update_request import SandboxUpdateRequest

FOLDER = os.environ.get("FOLDER", "")
SECRET = os.environ["WEBHOOK_SECRET"]
client = Client(base_url=os.environ["MANAGER_URL"], token=os.environ["MANAGER_TOKEN"])


def awaited(find):
    """What `find` gives at last."""
    deadline = time.monotonic() + 60
    while not (found := find()):
        assert time.monotonic() < deadline, "it has not come"
        time.sleep(0.05)
    return found


def refused(call, status, code):
    """The details of the error that a call ends with, as they came: the client has no model of some statuses."""
    try:
        answer = call()
    except APIError as error:
        said = json.loads(error.body)["error"]
        assert (error.status_code, said["code"]) == (status, code), error
        return said.get("details", {})
    raise AssertionError(f"it was answered {answer}")


def claimed():
    config = {"env_vars": {"MODE": "real"}, "ttl": 600, "auto_resume": False}
    webhook = {"url": os.environ["WEBHOOK_URL"], "secret": SECRET}
    # `from_dict` adds what was not given: `services: []`, for example.
    return client.sandboxes.claim(
        "default", config=SandboxConfig.from_dict({**config, "webhook": webhook}), memory="256Mi"
    )


def commands(sandbox):
    done = sandbox.cmd('sh -c "echo $MODE; echo warn >&2; exit 3"', CmdOptions(cwd="/tmp"))
    assert (done.stdout, done.stderr, done.exit_code, done.state) == ("real\n", "warn\n", 3, "stopped"), done
    assert "ONE=more" in sandbox.cmd("env", CmdOptions(env_vars={"ONE": "more"})).stdout
    refused(lambda: sandbox.cmd("no-such-program"), 400, "invalid_request")
    refused(lambda: sandbox.run("python", "print(1)"), 501, "not_implemented")

    stream = sandbox.cmd_stream('sh -c "echo out; echo err >&2; exit 5"')
    outputs = {}
    for each in stream.iter_outputs():
        outputs[each.source] = outputs.get(each.source, "") + each.data
    assert outputs == {"stdout": "out\n", "stderr": "err\n"}, outputs
    assert (stream.wait().exit_code, stream.wait().state) == (5, "stopped")
    talk = sandbox.cmd_stream("head -n 1")
    talk.send_input("typed\n")
    assert "".join(each.data for each in talk.iter_outputs()) == "typed\n"
    ended = sandbox.cmd_stream("sleep 60")
    ended.send_signal("TERM")
    assert ended.wait().exit_code == 143


def contexts(sandbox):
    def shell(**more):
        cmd = CreateCMDContextRequest(command=["sh"])
        return sandbox.create_context(CreateContextRequest(type_=ProcessType.CMD, cmd=cmd, cwd="/tmp", **more))

    made = shell()
    assert (made.type_, made.cwd, made.running, made.paused) == (ProcessType.CMD, "/tmp", True, False), made
    assert made.id in [each.id for each in sandbox.list_contexts()]
    assert sandbox.context_input(made.id, "echo one\n").data.written is True
    executed = sandbox.context_exec(made.id, "echo two; exit 4\n")
    assert (executed.stdout, executed.exit_code) == ("one\ntwo\n", 4), executed
    got = sandbox.get_context(made.id)
    assert (got.running, got.exit_code, got.stdout) == (False, 4, "one\ntwo\n"), got
    assert sandbox.restart_context(made.id).running is True
    assert sandbox.context_signal(made.id, "KILL").data.signaled is True
    awaited(lambda: sandbox.get_context(made.id).exit_code == 137)

    terminal = shell(pty_size=PTYSize(rows=24, cols=80))
    assert sandbox.context_resize(terminal.id, 30, 99).data.resized is True
    socket = sandbox.connect_ws_context(terminal.id)
    socket.send(StreamInput(type="input", data="stty size; exit\n"))
    assert "30 99" in "".join(each.data for each in socket.iter_outputs())
    assert sandbox.delete_context(terminal.id).data.deleted is True
    refused(lambda: sandbox.get_context("proc_nobody"), 404, "not_found")


def files(sandbox):
    assert sandbox.mkdir(f"{FOLDER}/deep/er", recursive=True).data.created is True
    assert sandbox.mkdir(f"{FOLDER}/deep/er", recursive=True).data.created is False
    watcher = sandbox.watch_files(FOLDER, recursive=True)
    assert sandbox.write_file(f"{FOLDER}/file", b"hello").data.written is True
    assert sandbox.write_file(f"{FOLDER}/file", b"hello").data.written is True
    assert sandbox.read_file(f"{FOLDER}/file") == b"hello"
    stat = sandbox.stat_file(f"{FOLDER}/file")
    assert (stat.name, stat.type_, stat.size) == ("file", "file", 5), stat
    assert [each.name for each in sandbox.list_files(FOLDER)] == ["deep", "file"]
    assert sandbox.move_file(f"{FOLDER}/file", f"{FOLDER}/moved").data.moved is True
    content = bytes(range(256))
    sandbox.write_file(f"{FOLDER}/deep/er/bytes", content)
    assert sandbox.read_file(f"{FOLDER}/deep/er/bytes") == content
    assert sandbox.delete_file(f"{FOLDER}/deep/er/bytes").data.deleted is True
    seen = []
    for each in watcher.iter_events():
        seen.append((each.event, each.path))
        if seen[-1] == ("remove", f"{FOLDER}/deep/er/bytes"):
            break
    assert {("create", f"{FOLDER}/file"), ("rename", f"{FOLDER}/moved")} <= set(seen), seen
    watcher.unsubscribe()
    refused(lambda: sandbox.stat_file(f"{FOLDER}/file"), 404, "not_found")


def lifecycle(sandbox):
    one = sandbox.id
    refreshed = client.sandboxes.refresh(one, SandboxRefreshRequest(duration=900))
    assert refreshed.expires_at > client.sandboxes.get(one).created_at
    assert client.sandboxes.update(one, SandboxUpdateRequest.from_dict({"config": {"ttl": 700}})).id == one

    sleeping = sandbox.cmd("sleep 1000", CmdOptions(wait=False)).context_id
    paused = client.sandboxes.pause(one)
    assert (paused.paused, paused.status, paused["memory"]) == (True, SandboxLifecycleStatus.PAUSED, False), paused
    refused(lambda: sandbox.cmd("true"), 409, "conflict")
    assert sandbox.read_file(f"{FOLDER}/moved") == b"hello"
    assert client.sandboxes.resume(one)["memory"] is False
    assert sandbox.get_context(sleeping).running is False

    kept = sandbox.cmd("sleep 1000", CmdOptions(wait=False)).context_id
    before = client.sandboxes.pause_and_wait(one, memory=True)
    assert client.sandboxes.resume_and_wait(one, memory=True).runtime_generation == before.runtime_generation + 1
    assert sandbox.get_context(kept).running is True

    forked = client.sandboxes.fork(one)
    assert (forked.source_sandbox_id, forked.sandbox.status) == (one, SandboxLifecycleStatus.PAUSED), forked
    assert forked["memory"] is False
    child = client.sandbox(forked.sandbox.id)
    client.sandboxes.resume_and_wait(child.id)
    assert child.read_file(f"{FOLDER}/moved") == b"hello"
    assert [each.id for each in client.sandboxes.list(status="running")] == [child.id, one]
    assert client.sandboxes.list(paused=True) == []
    return child


def quotas():
    by_name = {each.dimension: each for each in client.list_team_quotas()}
    assert by_name[QuotaDimension.ACTIVE_SANDBOXES].current == 2
    assert client.get_team_quota(QuotaDimension.SANDBOX_CLAIMS).kind == "rate"


def usage():
    window_type = "sandbox.runtime_mib_milliseconds"
    first = client.list_usage_windows(window_type=window_type, limit=1)
    assert (len(first.windows), first.windows[0].window_type) == (1, window_type), first
    rest = client.list_usage_windows(window_type=window_type, cursor=first.next_cursor)
    assert first.windows[0].window_id not in [each.window_id for each in rest.windows]


def not_built(sandbox):
    policy = SandboxNetworkPolicy(mode=SandboxNetworkPolicyMode.ALLOW_ALL)
    for call, feature in [
        (sandbox.list_sessions, "sessions"),
        (sandbox.get_services, "services"),
        (sandbox.clear_services, "services"),
        (sandbox.list_observability_events, "observability"),
        (sandbox.list_logs, "observability"),
        (sandbox.get_metrics_catalog, "metrics"),
        (sandbox.get_network_policy, "network policy"),
        (lambda: sandbox.update_network_policy(policy), "network policy"),
        (lambda: client.sandboxes.list_rootfs_snapshots(sandbox.id), "snapshots"),
        (client.list_templates, "templates"),
        (client.list_credential_sources, "credential sources"),
    ]:
        assert refused(call, 501, "not_implemented")["feature"] == feature, feature
    field = refused(lambda: client.sandboxes.claim("default", snapshot_id="snap"), 501, "not_implemented")["field"]
    assert field == "snapshot_id"


def main():
    sandbox = claimed()
    assert (sandbox.status, sandbox.cluster_id) == (SandboxLifecycleStatus.RUNNING, "local"), sandbox.status
    record = client.sandboxes.get(sandbox.id)
    assert record.runtime_id == sandbox.runtime_id == client.sandboxes.status(sandbox.id).runtime_id != ""
    commands(sandbox)
    contexts(sandbox)
    files(sandbox)
    child = lifecycle(sandbox)
    quotas()
    not_built(sandbox)
    for one in (child.id, sandbox.id):
        assert client.sandboxes.delete(one).data.message
    awaited(lambda: client.sandboxes.list() == [])
    for call in (client.sandboxes.get, client.sandboxes.status, client.sandboxes.pause, client.sandboxes.delete):
        assert refused(lambda: call(sandbox.id), 404, "not_found")["deleted_at"]
    usage()
    print("done")


def signatures():
    body, signature = os.environ["BODY"].encode(), os.environ["SIGNATURE"]
    assert verify_webhook_signature(SECRET, body, signature)
    assert not verify_webhook_signature(SECRET, body + b" ", signature)
    print("signed")


signatures() if "SIGNATURE" in os.environ else main()
