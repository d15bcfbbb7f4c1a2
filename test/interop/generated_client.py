"""Drives both programs by the clients that openapi-python-client has made from their documents."""

import os
import time
from io import BytesIO

import sandbox_manager_client as manager_client
import sandboxd_client
from sandbox_manager_client import models
from sandbox_manager_client.api.deliveries import list_deliveries
from sandbox_manager_client.api.files import download_file, list_files, stat_file, write_file
from sandbox_manager_client.api.processes import get_process, start_process
from sandbox_manager_client.api.sandboxes import claim_sandbox, delete_sandbox, get_sandbox, list_sandboxes
from sandbox_manager_client.types import File
from sandboxd_client.api.deliveries import get_delivery
from sandboxd_client.api.events import publish_event
from sandboxd_client.models import DeliveryState, PublishRequest


def awaited(find):
    """What `find` gives at last."""
    deadline = time.monotonic() + 30
    while (found := find()) is None:
        assert time.monotonic() < deadline, "it has not come"
        time.sleep(0.05)
    return found


def manager() -> None:
    client = manager_client.AuthenticatedClient(os.environ["MANAGER_URL"], os.environ["MANAGER_TOKEN"], timeout=60)
    webhook = models.WebhookRequest(url=os.environ["WEBHOOK_URL"], secret="whsec_a2V5IG1hZGUgZm9yIHRoaXMgdGVzdA==")
    config = models.ClaimConfig(webhook=webhook, ttl=600)
    claimed = claim_sandbox.sync(client=client, body=models.ClaimSandboxRequest(config=config))
    assert isinstance(claimed, models.ClaimedSandboxResponse), claimed
    assert claimed.data.status is models.ActiveStatus.RUNNING
    one = claimed.data.sandbox_id
    assert [each.id for each in list_sandboxes.sync(client=client).data.sandboxes] == [one]

    command = models.StartProcessRequest(command=["sh", "-c", "echo out; echo err >&2; exit 3"], process_id="p")
    started = start_process.sync(one, client=client, body=command, wait_ms=30_000)
    assert isinstance(started, models.StartedProcessResponse), started
    assert (started.data.output.stdout, started.data.output.stderr) == ("out\n", "err\n")
    assert (started.data.state, started.data.exit_code) == (models.ProcessState.EXITED, 3)
    assert get_process.sync(one, "p", client=client).data.command == ["sh", "-c", "echo out; echo err >&2; exit 3"]

    content = bytes(range(256))
    written = write_file.sync(one, client=client, path="/tmp/bytes", body=File(payload=BytesIO(content)))
    assert isinstance(written.data, models.WrittenFile) and written.data.size == 256
    assert download_file.sync(one, client=client, path="/tmp/bytes").payload.read() == content
    assert stat_file.sync(one, client=client, path="/tmp/bytes").data.size == 256
    assert "bytes" in [entry.name for entry in list_files.sync(one, client=client, path="/tmp").data.entries]
    missing = stat_file.sync(one, client=client, path="/nowhere")
    assert isinstance(missing, models.NotFoundError) and missing.error.details.path == "/nowhere", missing

    def delivered():
        page = list_deliveries.sync(one, client=client, event_type=models.EventType.PROCESS_EXITED).data
        states = [(each.state, each.last_status) for each in page.deliveries]
        return page if states == [(models.DeliveryState.DELIVERED, 204)] else None

    assert awaited(delivered).next_cursor is None

    assert isinstance(delete_sandbox.sync(one, client=client), models.DeletedSandboxResponse)
    awaited(lambda: isinstance(get_sandbox.sync(one, client=client), models.NotFoundError) or None)
    last = get_sandbox.sync(one, client=client, include_deleted=True)
    assert last.data.status is models.RecordStatus.DELETED, last
    wrong = manager_client.AuthenticatedClient(os.environ["MANAGER_URL"], "no-token")
    assert isinstance(list_sandboxes.sync(client=wrong), models.UnauthorizedError)
    print("manager done")


def daemon() -> None:
    client = sandboxd_client.AuthenticatedClient(os.environ["DAEMON_URL"], os.environ["DAEMON_TOKEN"])
    body = PublishRequest.from_dict({"payload": {"step": "tests"}})
    receipt = publish_event.sync(client=client, body=body, idempotency_key="once").data
    assert publish_event.sync(client=client, body=body, idempotency_key="once").data.event_id == receipt.event_id

    def delivered():
        delivery = get_delivery.sync(receipt.event_id, client=client).data
        return delivery if delivery.state is DeliveryState.DELIVERED else None

    assert [attempt.status for attempt in awaited(delivered).attempts] == [204]
    print("daemon done")


manager()
daemon()
