#!/usr/bin/env python3
"""A logbook that was closed as ELOG stays closed on every surface, and the rules of its configuration bind the API too."""

import os
import urllib.parse

from attacked import Site, check, seeded, until

SECRET = "the secret text"
ENTRY = f"""$@MID@$: 1
Date: Wed, 10 Sep 2008 00:20:50 +0200
Author: zoe
Attachment: 080910_002050_plan.txt
Encoding: plain
========================================
{SECRET}
"""
# The books by name: options of ELOG beside the attributes, and whether guests may read them.
BOOKS = {
    "Shift": ("Password file = passwd\n", False),
    "Login": ("Password file = passwd\nLogin user = zoe\n", False),
    "Old": ("Read password = c2VjcmV0\n", False),
    "Hosts": ("Hosts deny = ALL\n", False),
    "Open": ("Password file = passwd\nGuest menu commands = List, Find\n", True),
}


def write_elog(folder, books, config):
    """Writes a directory of ELOG: its configuration, and for each logbook an entry with a file."""
    for book in books:
        os.makedirs(os.path.join(folder, book))
        with open(os.path.join(folder, book, "080910a.log"), "w", encoding="utf-8") as file:
            file.write(ENTRY)
        with open(os.path.join(folder, book, "080910_002050_plan.txt"), "w", encoding="utf-8") as file:
            file.write(SECRET)
    with open(os.path.join(folder, "elogd.cfg"), "w", encoding="utf-8") as file:
        file.write(config)


def surfaces(book):
    """Returns every path that shows an entry of a book."""
    elog = [f"/elog/{book}/", f"/elog/{book}/1", f"/elog/{book}/?mode=CSV1", f"/elog/{book}/page?mode=XML", f"/elog/{book}/?mode=full",
            f"/elog/{book}/?cmd=Find&subtext=secret", f"/elog/{book}/080910_002050/plan.txt", f"/elog/{book}/080910_002050_plan.txt",
            f"/elog/{book}/1?cmd=download", f"/elog/{book}/past10?", f"/elog/{book}/elog.rdf", f"/elog/{book}/1?cmd=Edit", f"/elog/{book}/1?cmd=Reply"]
    api = [f"/books/{book}/entries/1", f"/books/{book}/entries/1?html=true", f"/books/{book}/entries/1/history", f"/books/{book}/entries/1/thread?text=true",
           f"/books/{book}/entries/1/attachments/0", f"/search?q=secret&text=true&book={book}", "/search?q=secret&text=true",
           f"/search/export?q=secret&format=json&book={book}", "/search/export?q=&format=csv", f"/books/{book}"]
    return elog + api


def main():
    seeded("closed_elog")
    site = Site("closed")
    try:
        folder = os.path.join(site.directory, "elog")
        config = "[global]\nport = 8080\n"
        for book, (options, _) in BOOKS.items():
            config += f"[{book}]\n{options}Attributes = Author\n"
        write_elog(folder, BOOKS, config)
        site.run("book", "import-elog", folder, "--elog-config", os.path.join(folder, "elogd.cfg"), "--data", site.data)
        site.begin("--elog-listen", "127.0.0.1:0")
        site.make_user("zoe")
        for book, (_, guests) in BOOKS.items():
            shown = []
            for path in surfaces(book):
                if path.startswith(("/search?q=secret&text=true", "/search/export?q=&")) and "book=" not in path:
                    found = site.ask(path).text()
                    seen = f'"{book}"' in found and SECRET in found and not guests
                else:
                    seen = SECRET in site.ask(path).text()
                if seen:
                    shown.append(path)
            if guests:
                check(f"{book}: guests read what ELOG lets them read: {len(shown)} paths", shown)
            else:
                check(f"{book}: no guest reads it, on {len(surfaces(book))} paths: {shown}", not shown)
            written = site.ask(f"/books/{book}/entries", {"text": "x", "attributes": {"Author": "x"}})
            check(f"{book}: no guest writes: {written.status}", written.status in (401, 403))
        token = site.make_token("zoe", ["read", "write", "edit-own"])
        check("a user reads", SECRET in site.ask("/books/Shift/entries/1", token=token).text())
        check("no user of a denied host reads", SECRET not in site.ask("/books/Hosts/entries/1", token=token).text())
        rules(site, token)
        roles(site)
        password_files()
        site.alive()
    finally:
        site.close()


def rules(site, token):
    """The rules for commands and times bind the API."""
    options = [["Deny Delete", "zoe"], ["Restrict edit", "1"], ["Restrict edit time", "0.000001"]]
    site.must("/books/Rules", {"name": "Rules", "attributes": [{"name": "Author", "kind": "text"}], "elog": options}, "PUT")
    number = site.post("mine", "Rules", token=token)
    answer = site.ask(f"/books/Rules/entries/{number}", method="DELETE", token=token)
    check(f"'Deny Delete' binds the API: {answer.status}", answer.status == 403)

    def refused(text="mine"):
        change = {"text": text, "attributes": {"Author": "x"}}
        return site.ask(f"/books/Rules/entries/{number}", change, "PUT", token=token, headers={"If-Match": "*"}).status == 403

    # Until the entry is old enough, it may be changed.
    check("'Restrict edit time' binds the API", until("an old entry cannot be changed", refused) and refused("y"))
    check("nothing was changed", site.must(f"/books/Rules/entries/{number}")["text"] == "mine")


def roles(site):
    """A right that is given on the data directory opens nothing else: the site's setting for guests is no part of the record."""
    closed = Site("roles", book='guests = "none"')
    try:
        closed.begin()
        closed.make_book("A")
        closed.make_user("adm", admin=True)
        closed.post(SECRET, "A")
        check("guests do not read a closed site", closed.ask("/books/A/entries/1").status == 401)
        closed.run("book", "users", "role", "A", "user:adm", "read", "--data", closed.data)
        until("the right is there", lambda: "user:adm" in json_text(closed.must("/books/A/access")))
        access = closed.must("/books/A/access")
        guests = [grant for grant in access["grants"] if grant["to"] == "guests" and grant["may"]]
        check(f"a role on the data directory opens nothing to guests: {access}", not guests and closed.ask("/books/A/entries/1").status == 401)
        check("and nothing of ELOG's pages", SECRET not in closed.ask("/elog/A/1").text())
    finally:
        closed.close()


# Two password files with a common user, who has the same password in both.
DIGEST = "o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5"
FILES = {"a.pwd": ["ann", "cyd"], "b.pwd": ["ben", "cyd"]}


def password_files():
    """A logbook with a password file of its own is open to its users alone, in whatever order books and users are taken over."""
    for books_first in (True, False):
        site = Site("files")
        try:
            folder = os.path.join(site.directory, "elog")
            config = "[Pub]\nPassword file = a.pwd\nSelf register = 1\nAttributes = Author\n[Priv]\nPassword file = b.pwd\nAttributes = Author\n"
            write_elog(folder, ("Pub", "Priv"), config)
            for name, logins in FILES.items():
                users = "".join(f'<user><name>{login}</name><password encoding="SHA256">{DIGEST}</password></user>' for login in logins)
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(f"<list>{users}</list>")

            def books():
                told = site.run("book", "import-elog", folder, "--elog-config", os.path.join(folder, "elogd.cfg"), "--data", site.data)
                check("the import says who is admitted", "only users of 'b.pwd', who are the group 'elog b.pwd'" in told.stdout + told.stderr)

            def users():
                for name in FILES:
                    site.run("book", "users", "import-elog", os.path.join(folder, name), "--data", site.data)

            for step in (books, users) if books_first else (users, books):
                step()
            site.begin("--elog-listen", "127.0.0.1:0")
            password = "correct horse battery"
            form = {"cmd": "New user", "new_user_name": "mallory", "new_full_name": "Mal", "new_user_email": "m@example.org",
                    "newpwd": password, "newpwd2": password}
            sent = {"Content-Type": "application/x-www-form-urlencoded"}
            registered = site.ask("/elog/Pub/", urllib.parse.urlencode(form).encode(), headers=sent)
            check(f"a stranger registers at Pub: {registered.status}", registered.status == 302)
            for login, admitted in {"ann": ["Pub"], "ben": ["Priv"], "cyd": ["Pub", "Priv"], "mallory": ["Pub"]}.items():
                token = site.make_token(login, ["read", "write", "edit-own", "edit-any"])
                for book in ("Pub", "Priv"):
                    wanted = book in admitted
                    one = [path for path in surfaces(book) if book in path]
                    shown = [path for path in one if SECRET in site.ask(path, token=token).text()]
                    check(f"{login} reads {book} as in ELOG: {wanted} {shown}", bool(shown) == wanted)
                    written = site.ask(f"/books/{book}/entries", {"text": "x", "attributes": {"Author": "x"}}, token=token).status
                    check(f"{login} writes to {book} as in ELOG: {written}", (written == 201) == wanted)
            site.alive()
        finally:
            site.close()


def json_text(value):
    """Returns a value as text, to look for a word in it."""
    return str(value)


if __name__ == "__main__":
    main()
