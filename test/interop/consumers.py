"""Reads deliveries as lines of JSON and accepts each by the libraries of Standard Webhooks and CloudEvents."""

import json
import sys

from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks import Webhook, WebhookVerificationError

secret = sys.argv[1]
for line in sys.stdin:
    delivery = json.loads(line)
    headers, body = delivery["headers"], delivery["body"].encode()
    verified = Webhook(secret).verify(body, headers)
    try:
        Webhook(secret).verify(body + b" ", headers)
        sys.exit("a changed body is accepted")
    except WebhookVerificationError:
        pass
    event = from_http_event(HTTPMessage(headers=headers, body=body))
    print(
        json.dumps(
            {
                "specversion": event.get_specversion(),
                "id": event.get_id(),
                "source": event.get_source(),
                "type": event.get_type(),
                "time": event.get_time().isoformat(timespec="milliseconds"),
                "sequence": event.get_extension("sequence"),
                "is_same": event.get_data() == verified == json.loads(body),
            }
        )
    )
