#!/usr/bin/env python3
"""Each route of the API for each kind of caller: nobody gets more than their rights, and a right that ends, ends at once."""

import contextlib
import http.client
import json
import os
import threading

from attacked import Site, check, seeded, until

# The smallest body that a route takes, so that a refusal is one of rights and not of form.
BODIES = {
    "putBook": {"name": "B", "attributes": []}, "setAccess": {"grants": []}, "postEntry": {"text": "x", "attributes": {"Author": "x"}},
    "editEntry": {"text": "x", "attributes": {"Author": "x"}}, "copyEntry": {"to": "B"}, "moveEntry": {"to": "Other"}, "addLink": {"link": "run:1"},
    "lock": {}, "putTemplate": {"attributes": [], "text": "x"}, "saveDraft": {"book": "B"}, "changeDraft": {"book": "B"}, "setGroup": {"members": []},
    "login": {"login": "zoe", "password": "wrong"}, "changePassword": {"old": "wrong", "new": "another good one"}, "saveSearch": {"q": "x"},
    "makeToken": {"comment": "x", "may": ["read"]}, "addUser": {"login": "made", "password": "a good password"}, "changeUser": {"admin": True},
    "setPassword": {"password": "a good password"},
}
ADMIN = {"listUsers", "addUser", "dropUser", "changeUser", "setPassword", "setGroup"}
BOOK_ADMIN = {"putBook", "setAccess", "getAccess"}
WRITES = {"postEntry", "editEntry", "deleteEntry", "attach", "copyEntry", "moveEntry", "addLink", "dropLink", "lock", "putTemplate", "dropTemplate"}
READS = {"getEntry", "getHistory", "getThread", "getAttachment", "getPreview", "getLinks", "getLock", "listTemplates", "getTemplate"}
LOGIN = {"listDrafts", "saveDraft", "changeDraft", "dropDraft", "listSearches", "saveSearch", "dropSearch", "listTokens", "makeToken", "dropToken", "endSessions", "upload", "dropUpload",
         "changePassword", "logout"}


def main():
    seeded("authorisation")
    site = Site("matrix", book='guests = "none"')
    try:
        site.begin()
        for book in ("B", "Other"):
            site.make_book(book)
            site.must(f"/books/{book}/access", {"grants": [{"to": "user:reader", "may": ["read"]}, {"to": "user:writer", "may": ["read", "write", "edit-own"]},
                                                           {"to": "user:boss", "may": ["read", "admin"]}]}, "PUT") if book == "B" else None
        site.must("/books/Other/access", {"grants": [{"to": "user:stranger", "may": ["read", "write", "edit-own", "edit-any", "admin"]}]}, "PUT")
        tokens = {login: site.make_user(login) for login in ("reader", "writer", "boss", "stranger", "gone", "off")}
        tokens["read only"] = site.make_token("writer", ["read"])
        tokens["another book"] = site.make_token("writer", ["read", "write", "edit-own"], ["Other"])
        tokens |= {"guest": None, "wrong token": "x" * 43}
        site.must("/users/off", {"inactive": True}, "PATCH")
        site.must("/users/gone", method="DELETE")
        number = site.post("the secret text")
        site.must(f"/books/B/entries/{number}/attachments?name=a.txt", b"the secret text", headers={"If-Match": "*"})
        before = state(site, number)
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../spec/book-api.json"), encoding="utf-8") as file:
            routes = [(path, method, route["operationId"]) for path, methods in json.load(file)["paths"].items()
                      for method, route in methods.items() if isinstance(route, dict) and "operationId" in route]
        check(f"the document has {len(routes)} routes", len(routes) >= 54)
        for caller, token in tokens.items():
            wrong = []
            for path, method, name in routes:
                if name in ("streamSearch", "logout"):
                    continue
                real = path.format(book="B", id=number, number=0, name="x", sha="0" * 64, login="writer", group="g", link="run:1", line=1, rule=1)
                if "{number}" in path and "drafts" in path:
                    real = path.format(number=1)
                body = BODIES.get(name, b"x" if name in ("attach", "upload", "check") else None)
                real += {"attach": "?name=x", "search": "?q=secret&text=true", "exportSearch": "?q=secret&format=json", "check": "?q=x", "dropToken": "?login=writer", "endSessions": "?login=writer"}.get(name, "")
                answer = site.ask(real, body, method.upper(), token=token, headers={"If-Match": "*"})
                if answer.status >= 500 or not right(caller, name, answer):
                    wrong.append((name, answer.status))
            check(f"{caller}: {len(routes)} routes: {wrong}", not wrong)
        check("nothing was changed by callers without the right", state(site, number) == before)
        others(site, tokens)
        ends(site)
        site.alive()
    finally:
        site.close()


def right(caller, name, answer):
    """True if an answer gives a caller no more than their rights."""
    refused = answer.status in (400, 401, 403, 404, 405, 409, 410, 415, 422)
    secret = b"the secret text" in answer.body
    if caller in ("guest", "wrong token", "gone", "off"):
        free = name in ("whoami", "explainRights", "openapi", "search", "exportSearch", "listBooks", "check", "login", "listGroups")
        return not secret and (refused or free) and (caller == "guest" or answer.status == 401 or name in ("openapi", "login"))
    if caller in ("stranger", "another book") and name in READS | WRITES | BOOK_ADMIN:
        return refused and not secret
    if caller in ("stranger", "another book"):
        return not secret and (refused or name not in ADMIN)
    if name in ADMIN:
        return refused
    if caller in ("reader", "read only") and name in WRITES | BOOK_ADMIN:
        return refused
    if caller == "writer" and name in BOOK_ADMIN | {"editEntry", "deleteEntry", "moveEntry", "attach", "addLink", "dropLink"}:
        return refused
    if caller == "boss" and name in {"editEntry", "deleteEntry", "attach", "addUser"}:
        return refused
    return True


def state(site, number):
    """The parts that nobody may change: the entry, its rights for others, the users."""
    entry = site.must(f"/books/B/entries/{number}")
    users = sorted((user["login"], user["admin"], user["inactive"]) for user in site.must("/users"))
    return entry["text"], entry["revision"], len(entry["attachments"]), users


def others(site, tokens):
    """Drafts, saved searches, uploads and locks of others."""
    site.must("/books/B", {"name": "B", "attributes": [{"name": "Author", "kind": "text"}]}, "PUT")
    grants = [{"to": f"user:{login}", "may": ["read", "write", "edit-own"]} for login in ("reader", "writer")]
    site.must("/books/B/access", {"grants": grants}, "PUT")
    draft = site.must("/drafts", {"book": "B", "text": "mine alone"}, token=tokens["writer"])["number"]
    answers = [site.ask(f"/drafts/{draft}", {"book": "B", "text": "x"}, "PUT", token=tokens["reader"]),
               site.ask(f"/drafts/{draft}", method="DELETE", token=tokens["reader"]), site.ask("/drafts", token=tokens["reader"])]
    check(f"a draft of another: {[answer.status for answer in answers]}",
          answers[0].status == answers[1].status == 404 and b"mine alone" not in answers[2].body)
    own = site.must("/uploads", b"secret bytes", token=tokens["writer"])["sha"]
    stolen = {"text": "x", "attributes": {"Author": "x"}, "attachments": [{"name": "a", "sha": own}]}
    check("an upload of another cannot be attached by its digest", site.ask("/books/B/entries", stolen, token=tokens["reader"]).status in (403, 404, 422))
    locked = site.post("locked", token=tokens["writer"])
    held = site.ask(f"/books/B/entries/{locked}/lock", {}, "PUT", token=tokens["writer"]).status
    freed = site.ask(f"/books/B/entries/{locked}/lock", method="DELETE", token=tokens["reader"]).status
    still = site.ask(f"/books/B/entries/{locked}/lock", token=tokens["writer"])
    check(f"a lock of another stays: taken {held}, freed {freed}, {still.text()[:60]}", held == 200 and b"writer" in still.body)
    reply = site.post("an answer", token=tokens["reader"], parent=site.post("a question", token=tokens["writer"]))
    answer = site.ask(f"/books/B/entries/{reply - 1}?replies=true", method="DELETE", token=tokens["writer"])
    check(f"a thread with a reply of another is not deleted: {answer.status}", answer.status == 403)
    answer = site.ask(f"/books/B/entries/{reply - 1}/move", {"to": "Other", "replies": True}, token=tokens["writer"])
    check(f"nor moved into a closed book: {answer.status}", answer.status in (403, 404))


def ends(site):
    """A right that is taken away ends for requests at once, and for streams that are open."""
    for book in ("Live", "Still"):
        site.make_book(book)
        site.must(f"/books/{book}/access", {"grants": [{"to": "user:live", "may": ["read"]}]}, "PUT")
    token = site.make_user("live")
    heard, opened, closed = [], threading.Event(), threading.Event()

    def listen():
        connection = site.connection(timeout=120)
        connection.request("GET", "/api/v1/search/stream?q=", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        opened.set()
        with contextlib.suppress(http.client.HTTPException, ConnectionError):
            while piece := answer.read1(65536):
                heard.append(piece)
        closed.set()
        connection.close()

    threading.Thread(target=listen, daemon=True).start()
    check("a reader has a stream", opened.wait(60))
    site.post("before", "Live")
    until("the stream brings an entry", lambda: b"before" in b"".join(heard))
    site.must("/books/Live/access", {"grants": []}, "PUT")
    check("a request is refused at once", site.ask("/books/Live/entries/1", token=token).status in (401, 403, 404))
    site.post("afterwards", "Live")
    site.post("of the other book", "Still")
    until("the stream brings the next entry of another book", lambda: b"of the other book" in b"".join(heard))
    check("the stream brings nothing of a book whose right has ended", b"afterwards" not in b"".join(heard))
    site.must("/users/live", method="DELETE")
    check("a user who was removed is nobody", site.ask("/whoami", token=token).status == 401)
    check("and their stream ends", closed.wait(60))


if __name__ == "__main__":
    main()
