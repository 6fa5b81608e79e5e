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
    "saveLogFilter": {"filter": "x"}, "getForm": {}, "previewText": {"text": "x"},
    "makeToken": {"comment": "x", "may": ["read"]}, "addUser": {"login": "made", "password": "a good password"}, "changeUser": {"admin": True},
    "setPassword": {"password": "a good password"}, "bindUser": {"method": "sso"}, "renameBook": {"name": "Renamed"}, "undeleteBook": {}, "purgeBook": {"reason": "x"},
    "purgeEntry": {"reason": "x"}, "addRule": {"effect": "allow", "who": "guest", "may": ["read"], "what": "book/B"}, "putConfig": {"text": "Theme = default"}, "restoreConfig": {},
    "testMail": {"to": "x@example.org"}, "addNotifyRule": {"query": "x"}, "setQuietHours": {"from": "22:00", "to": "06:00"},
    "setLevels": {"name": "*", "central": "Off"}, "changeSetting": {"value": 0},
    "editEntries": [{"id": 1, "revision": 0, "text": "x", "attributes": {"Author": "x"}}], "signEntry": {"meaning": "author", "revision": 0},
}
# Queries without which a route does not come to the question of rights.
QUERIES = {"attach": "?name=x", "search": "?q=secret&text=true", "exportSearch": "?q=secret&format=json", "dropToken": "?login=writer", "endSessions": "?login=writer",
           "attributeHistory": "?name=site/family/member/attribute", "keptEvents": "?name=site/family/member/attribute", "currentValues": "?name=site/family/member/attribute",
           "explainEvents": "?pattern=*", "logChain": "?stack=1", "logContext": "?at=now", "mentions": "?to=run:1", "countMentions": "?to=run:1", "timeline": "?since=1h"}
# Tokens with fewer rights or logbooks than their user.
NARROW = {"read only", "another book"}
# Changes that the logbook's administrator may make, and that the test does not need.
SPARED = {"purgeEntry", "putConfig", "restoreConfig"}
# Rights that routes ask for. A route of the document that stands in none of these sets fails the test.
ADMIN = {"listUsers", "getUser", "addUser", "dropUser", "changeUser", "setPassword", "bindUser", "unbindUser", "listGroups", "setGroup", "listRegistrations", "approveRegistration",
         "refuseRegistration", "mailQueue", "testMail", "retryMail", "dropMail", "check", "usage", "listRules", "explainAccess", "addRule", "dropRule", "renameBook", "deleteBook",
         "listDeletedBooks", "undeleteBook", "purgeBook", "showSettings", "changeSetting", "resetSetting"}
BOOK_ADMIN = {"putBook", "setAccess", "getAccess", "getConfig", "putConfig", "listConfigChanges", "getConfigChange", "restoreConfig", "purgeEntry", "verifySignatures"}
WRITES = {"postEntry", "editEntry", "editEntries", "deleteEntry", "attach", "copyEntry", "moveEntry", "addLink", "dropLink", "lock", "putTemplate", "dropTemplate", "getForm", "previewText"}
READS = {"getBook", "getEntry", "getHistory", "getThread", "getAttachment", "getPreview", "getLinks", "getLooks", "getLock", "unlock", "getSigning", "signEntry", "listTemplates", "getTemplate", "getEntryPdf", "resolveLinks"}
# Logs, attributes, transfers and the state of the site: nobody but the owner has them without a rule of the site.
OF_SITE = {"queryLog", "showRecord", "logContext", "logChain", "logHistogram", "logStat", "logPatterns", "exportLog", "listLoggers", "setLevels", "logStatus", "listAttributes", "attributeTree",
           "currentValues", "attributeHistory", "keptEvents", "exportEvents", "explainEvents", "runningTransfers", "listTransfers", "showTransfer", "showSite"}
# Things of the caller's own. Those about a user are the user's, or an administrator's.
OWN = {"listDrafts", "saveDraft", "changeDraft", "dropDraft", "listSearches", "saveSearch", "dropSearch", "listLogFilters", "saveLogFilter", "dropLogFilter", "listTokens", "makeToken", "dropToken", "endSessions", "changePassword"}
OF_USER = {"listNotifyRules", "addNotifyRule", "removeNotifyRule", "testNotifyRule", "setQuietHours", "dropQuietHours"}
SENDS = {"upload", "dropUpload"}
OPEN = {"whoami", "gateway", "explainRights", "openapi", "search", "exportSearch", "atomFeed", "calendar", "listBooks", "login", "beginOwner",
        "capabilities", "timeline", "mentions", "countMentions"}
# Streams are read by `ends`; a logout is about the cookie of the request.
LEFT = {"streamSearch", "logout"}
KNOWN = ADMIN | BOOK_ADMIN | WRITES | READS | OF_SITE | OWN | OF_USER | SENDS | OPEN | LEFT


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
        unknown = sorted({name for _, _, name in routes} ^ KNOWN)
        check(f"the document has {len(routes)} routes, and this test knows each: {unknown}", not unknown)
        for caller, token in tokens.items():
            wrong = []
            for path, method, name in routes:
                if name in LEFT:
                    continue
                real = path.format(book="B", id=number, number=0, name="x", sha="0" * 64, login="writer", group="g", link="run:1", line=1, rule=1)
                if "{number}" in path and "drafts" in path:
                    real = path.format(number=1)
                body = BODIES.get(name, b"x" if name in ("attach", "upload", "check") else None)
                if caller == "boss" and name in SPARED:
                    continue
                real += QUERIES.get(name, "")
                answer = site.ask(real, body, method.upper(), token=token, headers={"If-Match": "*"})
                if answer.status >= 500 and answer.status != 501 or not right(caller, name, answer):
                    wrong.append((name, answer.status))
            check(f"{caller}: {len(routes)} routes: {wrong}", not wrong)
        check("nothing was changed by callers without the right", state(site, number) == before)
        others(site, tokens)
        narrow(site, routes)
        lost(site)
        ends(site)
        site.alive()
    finally:
        site.close()


def right(caller, name, answer):
    """True if an answer gives a caller no more than their rights."""
    denied = answer.status in (401, 403, 404)
    refused = denied or answer.status in (400, 405, 409, 410, 412, 415, 422)
    secret = b"the secret text" in answer.body
    if name not in KNOWN:
        return False
    if caller in ("guest", "wrong token", "gone", "off"):
        # Without a text to search for, the calendar and the feed say so.
        free = name in OPEN
        return not secret and (refused or free) and (caller == "guest" or answer.status == 401 or name in ("openapi", "login"))
    if name in ADMIN | OF_SITE:
        return denied
    if name in OWN | OF_USER and caller in NARROW:
        return answer.status == 403
    # Things of the user `writer`.
    if name in OF_USER and caller != "writer":
        return denied
    if caller in ("stranger", "another book"):
        return not secret and (denied if name in READS | WRITES | BOOK_ADMIN else True)
    if caller in ("reader", "read only") and name in WRITES | BOOK_ADMIN | SENDS:
        return denied
    if caller == "writer" and name in BOOK_ADMIN | {"editEntry", "deleteEntry", "moveEntry", "attach", "addLink", "dropLink"}:
        return refused and (denied or name not in BOOK_ADMIN)
    if caller == "boss" and name in {"editEntry", "deleteEntry", "attach"}:
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


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def narrow(site, routes):
    """A token with fewer rights or logbooks than its user uses nothing of the user's own, on any route and any page."""
    for book in ("Mine", "Qhidden"):
        site.make_book(book)
        site.must(f"/books/{book}/access", {"grants": [{"to": "user:own", "may": ["read", "write", "edit-own"]}]}, "PUT")
    whole = site.make_user("own")
    session = site.ask("/login", {"login": "own", "password": "correct horse battery"})
    browser = {"Cookie": session.headers["set-cookie"].split(";")[0], "X-Tampu-Form": session.json()["form"]}
    draft = site.must("/drafts", {"book": "Qhidden", "text": "words of a draft"}, token=whole)["number"]
    search, rule = site.must("/searches/kept", {"q": "wordsofasearch"}, "PUT", token=whole), site.must("/users/own/rules", {"query": "wordsofarule"}, token=whole)
    site.must("/users/own/quiet", {"from": "22:00", "to": "06:00"}, "PUT", token=whole)
    file = site.must("/uploads", b"bytes of an upload", token=whole)["sha"]
    held = site.post("held", "Mine", token=whole)
    site.must(f"/books/Mine/entries/{held}/lock", {}, "PUT", token=whole)

    def own():
        """Everything of the user, as the user sees it."""
        seen = [site.must(path, token=whole) for path in ("/drafts", "/searches", "/users/own/rules", f"/books/Mine/entries/{held}/lock")]
        tokens = [token["id"] for token in site.must("/tokens", token=whole)]
        return seen, tokens, site.ask("/whoami", headers=browser).json()["by"]

    tokens = {"read only": site.make_token("own", ["read"]), "of one logbook": site.make_token("own", [], ["Mine"]),
              "both": site.make_token("own", ["read"], ["Mine"])}
    site.must("/sessions?login=stranger", method="DELETE")
    until("the audit has it", lambda: any("DELETE /sessions" in record["message"] for record in site.hub_said("")))
    before = own()
    check("the user has things of their own", len(before[0][0]) == 1 and search and before[2] == "session")
    values = {"book": "Mine", "id": held, "number": draft, "name": "kept", "sha": file, "login": "own", "group": "g", "link": "run:1", "line": 1, "rule": rule["id"]}
    secrets = (b"words of a draft", b"wordsofasearch", b"wordsofarule", b"bytes of an upload")
    for caller, token in tokens.items():
        wrong, tried, unchanged = [], 0, own()
        for path, method, name in routes:
            if name in LEFT or "{book}" in path and name != "unlock":
                continue
            # The id of a token, and of a signed entry.
            given = {**values, "id": before[1][0] if "tokens" in path else held}
            body = BODIES.get(name, b"x" if name in ("upload", "check") else None)
            answer = site.ask(path.format(**given) + (QUERIES.get(name, "") if name in OF_SITE else ""), body, method.upper(), token=token, headers={"If-Match": "*"})
            tried += 1
            refused = answer.status == 403
            if answer.status >= 500 and answer.status != 501 or any(secret in answer.body for secret in secrets) or b"Qhidden" in answer.body and caller != "read only":
                wrong.append((name, answer.status, "shown"))
            elif name in SENDS | {"unlock"}:
                if caller != "of one logbook" and not refused:
                    wrong.append((name, answer.status))
            elif name not in OPEN and not refused:
                wrong.append((name, answer.status))
        check(f"a token {caller}: {tried} routes outside of logbooks: {wrong}", tried > 40 and not wrong)
        for form in ("cmd=Logout&everywhere=1", "cmd=Save&config=own&new_full_name=x&new_user_email=a@b.example&password=x", "cmd=Save&config=own&rule_act=add&about=all&digest=off",
                     f"cmd=Drop+draft&draft_id={draft}", f"cmd=Save&draft=1&scripted=1&draft_id={draft}&Author=x&Text=overwritten"):
            for page in ("/elog/", "/elog/Mine/"):
                site.ask(page, form.encode(), token=token, headers=FORM)
        for page in ("/elog/?cmd=Config", "/elog/Mine/?cmd=Config", f"/elog/Mine/?cmd=New&draft={draft}", "/elog/Mine/", "/elog/Qhidden/"):
            answer = site.ask(page, token=token)
            check(f"a token {caller}: {page} shows nothing of the user ({answer.status})", not any(secret in answer.body for secret in secrets))
        if caller != "of one logbook":
            check(f"a token {caller} changed nothing of the user", own() == unchanged)
    # A token with the right to write in the logbook may release the user's lock and save drafts there, and no more.
    after = own()
    kept = [draft for draft in after[0][0] if draft["book"] == "Qhidden"]
    check("a token of one logbook changed nothing of the others", (kept, after[0][1:3], after[1], after[2]) == (before[0][0], before[0][1:3], before[1], before[2]))


def lost(site):
    """A user who has lost the right to a logbook reads it no more, by things of their own that were made before."""
    site.make_book("Left")
    grant = lambda may: site.must("/books/Left/access", {"grants": [{"to": "user:left", "may": may}]}, "PUT")
    grant(["read", "write", "edit-own", "edit-any"])
    token = site.make_user("left")
    number = site.post("of the others", "Left")
    draft = site.must("/drafts", {"book": "Left", "edits": number, "text": "of the others, changed"}, token=token)["number"]
    kept = site.must("/drafts", {"book": "Left", "text": "mine"}, token=token)["number"]
    check("drafts are listed", len(site.must("/drafts", token=token)) == 2)
    grant([])
    check("drafts of a logbook that was closed are not", site.must("/drafts", token=token) == [])
    check("nor are they changed", site.ask(f"/drafts/{draft}", {"book": "B", "text": "x"}, "PUT", token=token).status in (403, 404))
    page = site.ask(f"/elog/Left/?cmd=New&draft={draft}", token=token)
    check(f"nor shown by a page ({page.status})", b"of the others" not in page.body)
    check("they can be deleted", site.ask(f"/drafts/{kept}", method="DELETE", token=token).status == 204)
    grant(["read"])
    check("and the rest is there again with the right", [one["number"] for one in site.must("/drafts", token=token)] == [draft])


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
