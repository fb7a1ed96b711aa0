"""The client side of a job lock, with the standard library alone. Copy it.

    python3 soloist_lock.py http://127.0.0.1:4040 NAME
"""
import json, sys, time, urllib.error, urllib.parse, urllib.request, uuid

TRIES = 3  # of a question that got no answer, or 503


class Refused(Exception):
    """Any answer but 200. code is "held", "done", "lost" and so on."""

    def __init__(self, status, answer):
        super().__init__(f"{status} {answer.get('error')}: {answer.get('message')}")
        self.status, self.code = status, answer.get("error")


class Lock:
    """with Lock(sidecar, name, wait="5s") as lock: ...

    Write with lock.fence, and only while lock.left() > 0. If the end of the block raises,
    the lock was not held to the end, or nobody knows: undo what was done.
    """

    def __init__(self, sidecar, name, **ask):
        self.url = sidecar + "/locks/" + urllib.parse.quote(name, safe="")
        # One id for one attempt, however often it is asked for. The sidecar may outlive
        # us, and shall not renew for the dead: hence at_most_for.
        self.body = {"request": str(uuid.uuid4()), "at_most_for": "30s", **ask}

    def __enter__(self):
        got = self._ask("POST", self.body)
        self.token, self.fence = got["token"], got["fence"]
        if self.left() < got["valid_for_ms"] / 2000:  # it was long in line: ask what is valid now
            self.renew()
        return self

    def renew(self):
        self._ask("PUT", {"token": self.token})

    def left(self):
        """For how many seconds the lock may be believed in."""
        return self.until - time.monotonic()

    def __exit__(self, failed, *_):
        done = "once" in self.body and not failed
        self._ask("DELETE", {"token": self.token, "done": done})

    def _ask(self, method, body):
        for attempt in range(1, TRIES + 1):
            asked = time.monotonic()  # the answer counts from before the question
            request = urllib.request.Request(self.url, json.dumps(body).encode(), method=method)
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    got = json.load(answer)
                self.until = asked + got.get("valid_for_ms", 0) / 1000
                return got
            except urllib.error.HTTPError as e:
                if e.code != 503 or attempt == TRIES:
                    raise Refused(e.code, json.load(e)) from None
            except OSError:
                if attempt == TRIES:
                    raise
            time.sleep(0.2)


def main(sidecar, name):
    with Lock(sidecar, name, wait="5s") as lock:
        print("fence", lock.fence, flush=True)
        for _ in range(10):  # the work, in steps that are short beside lock.valid
            if lock.left() <= 0:
                raise TimeoutError("the lock was valid for too short a time")
            time.sleep(0.1)
    print("released")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (Refused, OSError) as e:
        sys.exit(f"lock: not held, or not to the end; undo what was done: {e}")
