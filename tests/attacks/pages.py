#!/usr/bin/env python3
"""What a browser is given: no script, no image of another host, no attachment as a page, no foreign name of the host in a link."""

import re

from attacked import Site, check, seeded
from loads import attach

POISON = {
    "a.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "a.html": b"<form action=//evil><meta http-equiv=refresh content=0>",
    "a.xhtml": b"<html xmlns='http://www.w3.org/1999/xhtml'><script>alert(1)</script></html>", "a.xml": b"<?xml-stylesheet href='x.xsl'?><a/>",
    "a.js": b"alert(1)", "a.mht": b"From: x\n\n<script>alert(1)</script>", "a.swf": b"FWS", "a.txt": b"<html><script>alert(1)</script></html>",
    "a.pdf": b"%PDF-1.4", "a.css": b"body{background:url(//evil)}", "a.png": b"<script>alert(1)</script>",
}
# Types that a browser shows without running anything.
SAFE = {"application/octet-stream", "text/plain", "text/plain; charset=utf-8", "application/pdf", "image/png"}


def main():
    seeded("pages")
    site = Site("pages")
    try:
        site.begin()
        options = [[name, "<script>alert(1)</script>" + more] for name in ("Welcome title", "Bottom text", "Page Title", "Comment", "Title image URL")
                   for more in ("<img src=http://127.0.0.1:9/x>",)]
        options += [["Help URL", "javascript:alert(1)"], ["Main Tab URL", "javascript:alert(1)"], ["Logfile", "/etc/passwd"], ["Allow HTML", "1"],
                    ["Format Author", "0\" onclick=alert(1) x=\""], ["Display Author", "<script>alert(1)</script>"], ["Cell Style Author x", "background:url(//evil)"],
                    ["Execute new", "touch /tmp/tampu-was-run"], ["Subst Author", "$shell(touch /tmp/tampu-was-run)"]]
        site.make_book("B", elog=options)
        site.make_user("zoe")
        html = ("<script>alert(1)</script><img src=http://127.0.0.1:9/x onerror=alert(1)><a href='javascript:alert(1)'>a</a><a href='data:text/html,x'>b</a>"
                "<form action=//evil><input></form><iframe src=//evil></iframe><svg onload=alert(1)><style>*{color:red}</style><base href=//evil><meta http-equiv=refresh>")
        number = site.must("/books/B/entries", {"text": html, "encoding": "html", "attributes": {"Author": "<script>alert(1)</script>"}})["id"]
        for kind, text in {"markdown": "[a](javascript:alert(1)) <script>alert(1)</script> ![x](http://127.0.0.1:9/x)",
                           "elcode": "[url=javascript:alert(1)]a[/url] [img]javascript:alert(1)[/img] <script>alert(1)</script>"}.items():
            site.post(text, encoding=kind)
        for path in [f"/elog/B/{number}", "/elog/B/2", "/elog/B/3", "/elog/B/?mode=full", "/elog/B/?mode=threaded", "/elog/B/", "/elog/",
                     f"/api/v1/books/B/entries/{number}?html=true", "/api/v1/books/B/entries/2?html=true", "/api/v1/books/B/entries/3?html=true",
                     "/elog/B/?cmd=New", f"/elog/B/{number}?cmd=Edit", "/elog/B/?cmd=Find&subtext=%3Cscript%3Ealert(1)%3C/script%3E"]:
            answer = site.ask(path, token=site.owner)
            text = answer.text()
            if answer.headers["content-type"].startswith("application/json"):
                text = answer.json().get("html", "") or ""
            else:
                policy = answer.headers.get("content-security-policy", "")
                check(f"{path}: a policy without other hosts: {policy[:120]}", "default-src 'none'" in policy and "script-src" not in policy.replace("script-src 'sha256-", "")
                      and not re.search(r"img-src[^;]*https?:", policy))
            # In a page of the hub's own a text of the entry is escaped; in cleaned HTML it is gone.
            found = re.findall(r"<script>alert|<[^>]*\son\w+\s*=\s*[\"']?alert|href=[\"']?\s*(?:javascript|data):|<iframe|<form action=[\"']?//evil|<base |<svg", text, re.I)
            check(f"{path}: {answer.status}, nothing that runs: {found}", answer.status < 500 and not found)
        entry = site.post("files")
        for at, (name, body) in enumerate(POISON.items()):
            check(f"{name} is taken", attach(site, entry, name, body).status in (200, 201))
            for more in ("", "?inline=true"):
                answer = site.ask(f"/books/B/entries/{entry}/attachments/{at}{more}")
                kind, how = answer.headers["content-type"], answer.headers.get("content-disposition", "")
                policy = answer.headers.get("content-security-policy", "")
                check(f"{name}{more}: {kind}, {how.split(';')[0]}", kind in SAFE and answer.headers.get("x-content-type-options") == "nosniff"
                      and "default-src 'none'" in policy and answer.body == body)
        for name in ("../../etc/passwd", "x%0d%0aSet-Cookie:%20a=b", "a%22;b=.txt", "%E2%80%AEgpj.exe"):
            answer = attach(site, entry, name, b"x")
            shown = site.ask(f"/books/B/entries/{entry}").json()["attachments"][-1]["name"] if answer.status < 300 else ""
            check(f"a name '{name}': {answer.status} {shown!r}", answer.status in (201, 400, 422) and "/" not in shown and "\r" not in shown and "\n" not in shown)
        hosts(site)
        site.alive()
    finally:
        site.close()


def hosts(site):
    """The names of the host that a request brings reach no link, and a foreign name no answer."""
    for headers in ({"X-Forwarded-Host": "evil.example"}, {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil"}):
        for path in ("/elog/B", "/elog/B/", "/elog/B/1", "/elog/B/elog.rdf"):
            answer = site.ask(path, headers=headers)
            check(f"{path} with a forwarded name: {answer.status}", "evil" not in answer.headers.get("location", "") and "//evil.example" not in answer.text())
    for name in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "xlocalhost"):
        check(f"as '{name}'", site.ask("/whoami", headers={"Host": name}).status == 421)
    for origin in ("http://evil.example", "null"):
        answer = site.ask("/login", {"login": "zoe", "password": "x"}, headers={"Origin": origin})
        check(f"a login by a page of '{origin}': {answer.status}", answer.status in (401, 403) and "set-cookie" not in answer.headers)


if __name__ == "__main__":
    main()
