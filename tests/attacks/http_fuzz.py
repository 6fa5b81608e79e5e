#!/usr/bin/env python3
"""Schemathesis sends requests made from the hub's OpenAPI document, single ones and chains of them: no 500, no hang, and the hub lives.

`--requests N` bounds the number of requests (2000; by hand 50 000), `--seed N` repeats a run.
"""

import argparse
import collections
import os
import sys
import threading
import time

from attacked import Pulse, Site, check, memory, seeded

# The hub streams these answers until the client leaves.
ENDLESS = {"streamSearch"}
# Calls that take the fuzzer's own rights away.
OWN = {"logout", "changePassword"}


class Enough(BaseException):
    """The number of requests has been reached."""


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    if given.seed is not None:
        os.environ["TAMPU_SEED"] = str(given.seed)
    return given


class Judge:
    """Counts answers, and keeps requests that were answered wrongly."""

    def __init__(self, site, most):
        self.site, self.most = site, most
        self.statuses, self.wrong = collections.Counter(), {}
        self.routes = collections.Counter()
        self.lock = threading.Lock()

    def send(self, case, label):
        """Sends a case with one of several rights, and looks at the answer."""
        import requests

        with self.lock:
            count = sum(self.statuses.values())
            if count >= self.most:
                raise Enough
        token = [self.site.owner, self.site.writer, None][count % 7 // 3]
        # The fuzzer's own credentials are wrong; most requests shall come further.
        if count % 10:
            case.headers, case.cookies = case.headers or {}, {}
            case.headers.pop("Authorization", None)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            answer = case.call(headers=headers, timeout=60)
        except requests.exceptions.Timeout:
            self.note("no answer", label, case)
            return None
        except requests.exceptions.RequestException as error:
            if self.site.hub.poll() is not None:
                self.note(f"the hub has ended: {error}", label, case)
                raise Enough from None
            # The hub closes a connection whose request it does not read to its end; a second try shows what it says.
            with self.lock:
                self.statuses["closed"] += 1
            return None
        with self.lock:
            self.statuses[answer.status_code] += 1
            self.routes[label] += 1
        if answer.status_code >= 500 and answer.status_code not in (501, 503):
            self.note(f"{answer.status_code}: {answer.text[:300]}", label, case)
        elif answer.status_code >= 400 and not kind(answer).startswith("application/problem+json"):
            self.note(f"{answer.status_code} without a problem: {answer.text[:200]}", label, case)
        elif answer.status_code < 300 and label not in ENDLESS:
            documented = case.operation.definition.raw.get("responses", {})
            if str(answer.status_code) not in documented:
                self.note(f"{answer.status_code} is not in the document", label, case)
        return answer

    def note(self, what, label, case):
        """Keeps the first request of each kind of fault."""
        with self.lock:
            self.wrong.setdefault((label, what[:60]), f"{what} <- {case.as_curl_command()[:700]}")


def kind(answer):
    """Returns the type of an answer's body."""
    return (answer.headers.get("content-type") or [""])[0]


def schema_of(site):
    """Loads the document that the hub serves; its calls go to the hub."""
    import schemathesis

    return schemathesis.openapi.from_url(f"{site.url}/api/v1/openapi.json")


def single(schema, judge, share, chance):
    """Sends requests of each route on its own until a share of the number is reached."""
    operations = [found.ok() for found in schema.get_all_operations()]
    operations = [one for one in operations if one.definition.raw.get("operationId") not in ENDLESS | OWN]
    each = max(1, share // len(operations))
    for operation in operations:
        drive(operation, each, chance, lambda case, label: judge.send(case, label))
        if sum(judge.statuses.values()) >= share:
            return


def drive(operation, examples, chance, act):
    """Calls a function with a number of cases of a route."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    label = operation.definition.raw.get("operationId")

    @seed(chance.randrange(1 << 32))
    @settings(max_examples=examples, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def run(case):
        act(case, label)

    run()


def main():
    given = arguments()
    chance = seeded("http_fuzz")
    # What the fuzzer keeps about failures is printed; no directory is left.
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = ""
    site = Site("fuzz", book="connections_of_one = 256")
    try:
        site.begin()
        site.make_book("B")
        site.writer = site.make_user("zoe")
        site.make_user("max")
        for number in range(5):
            site.post(f"entry {number}", token=site.writer if number % 2 else site.owner)
        judge = Judge(site, given.requests)
        os.chdir(site.directory)
        schema = schema_of(site)
        begun = time.monotonic()
        with Pulse(site, pause=0.5) as pulse:
            try:
                single(schema, judge, given.requests * 2 // 3, chance)
                for step in walks(schema, judge, chance):
                    step()
            except Enough:
                pass
        pulse.held(f"{sum(judge.statuses.values())} requests in {time.monotonic() - begun:.0f} s")
        print(f"  statuses: {dict(sorted(judge.statuses.items(), key=str))}; {len(judge.routes)} routes", flush=True)
        for what in judge.wrong.values():
            print(f"  wrong: {what}", flush=True)
        check("no error of the hub, no answer that is not in the document", not judge.wrong)
        check(f"memory stays bounded ({memory(site.hub.pid)} MiB)", memory(site.hub.pid) < 700)
        check("all routes were tried", len(judge.routes) >= 50 or given.requests < 2000)
        site.alive()
    finally:
        site.close()


def walks(schema, judge, chance):
    """Yields walks over the API that use what earlier answers gave: books, numbers of entries, digests, names."""
    operations = [found.ok() for found in schema.get_all_operations()]
    operations = [one for one in operations if one.definition.raw.get("operationId") not in ENDLESS | OWN]
    known = {"book": ["B"], "id": [1, 2, 3], "number": ["0", "1"], "sha": [], "login": ["max"], "name": ["x"], "group": ["g"], "link": ["run:1"]}

    def remember(value):
        """Keeps the names and numbers that an answer holds."""
        if isinstance(value, dict):
            for key, one in value.items():
                # The account of the fuzzer itself stays.
                if key in known and one != "zoe" and isinstance(one, (str, int)) and len(known[key]) < 200:
                    known[key].append(one)
                remember(one)
        elif isinstance(value, list):
            for one in value[:20]:
                remember(one)

    def act(case, label):
        for name in list(case.path_parameters or {}):
            if known.get(name) and chance.random() < 0.9:
                case.path_parameters[name] = chance.choice(known[name])
        if isinstance(case.body, dict) and "attributes" in case.body and chance.random() < 0.7:
            case.body["attributes"] = {"Author": "x"}
        if case.headers is not None and chance.random() < 0.8:
            case.headers["If-Match"] = "*"
        answer = judge.send(case, label)
        if answer is not None and answer.status_code < 300 and kind(answer).startswith("application/json"):
            try:
                remember(answer.json())
            except ValueError:
                judge.note(f"{answer.status_code}: no JSON: {answer.text[:100]}", label, case)

    while True:
        yield lambda: drive(chance.choice(operations), 3, chance, act)


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    main()
