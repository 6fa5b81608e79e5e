#!/usr/bin/env python3
"""A real provider of identities (npm's oidc-provider) as a login method: the code flow as a browser goes through it, and answers that are forged."""

import html
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub import check
from logins import PASSWORD, LoginSite, browser, free_port, write

PACKAGES = os.environ.get("TAMPU_OIDC_PROVIDER") or os.path.expanduser("~/.cache/tampu/oidc-provider")
GROUPS = '[[book.login.group]]\nfrom = "operators"\ngroup = "ops"\n'


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def answer(opener, url, data=None):
    """Sends a request without going where it leads; status, headers, text."""
    body = urllib.parse.urlencode(data).encode() if data is not None else None
    stopped = urllib.request.build_opener(NoRedirect, *(handler for handler in opener.handlers if isinstance(handler, urllib.request.HTTPCookieProcessor)))
    try:
        with stopped.open(urllib.request.Request(url, body), timeout=60) as got:
            return got.status, got.headers, got.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def to_the_code(opener, site, person, to="", asked=None):
    """Goes through the provider's pages; the address with the code, which is not followed yet. `asked` gets what they ask for."""
    url, data = f"{site.url}/login/oidc/sso{to}", None
    for _ in range(12):
        status, headers, text = answer(opener, url, data)
        data = None
        if status in (302, 303):
            url = urllib.parse.urljoin(url, headers["Location"])
            if "/login/oidc/sso/back" in url:
                return url
            continue
        if status != 200:
            sys.exit(f"FAILED: {url}: {status} {text}")
        action = re.search(r'<form[^>]*action="([^"]*)"', text)
        url = urllib.parse.urljoin(url, html.unescape(action.group(1)))
        prompt = re.search(r'name="prompt" value="([^"]*)"', text).group(1)
        if asked is not None:
            asked.append(prompt)
        data = {"prompt": prompt, "login": f"id-of-{person}", "password": "any"}
    sys.exit("FAILED: the login at the provider does not end")


def whoami(opener, site):
    with opener.open(f"{site.url}/api/v1/whoami/explain", timeout=60) as got:
        return json.loads(got.read())


def main():
    site = LoginSite("login-oidc")
    port, book = free_port(), free_port()
    secret = write(os.path.join(site.directory, "oidc.secret"), "between the provider and the hub\n")
    here = os.path.dirname(os.path.abspath(__file__))
    back = f"http://127.0.0.1:{book}/login/oidc/sso/back"
    provider = subprocess.Popen(["node", os.path.join(here, "oidc_provider.mjs"), PACKAGES, str(port), back], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    site.processes.append(provider)
    try:
        if "listening" not in provider.stdout.readline():
            sys.exit("FAILED: the provider did not start")
        method = (
            f'[[book.login]]\nname = "sso"\nregister = true\n[book.login.oidc]\nissuer = "http://127.0.0.1:{port}"\nclient_id = "tampu"\n'
            f'client_secret_file = "{secret}"\nlabel = "the lab"\nlogout = true\nscopes = ["openid", "profile", "email", "groups"]\n{GROUPS}'
        )
        site.begin(method, port=book)
        tested(site, provider)
    finally:
        site.close()


def leaves(site):
    """Logs out here, then at the provider, and returns."""
    person = browser()
    answer(person, to_the_code(person, site, "max"))
    check("a person is logged in", whoami(person, site)["login"] == "max")
    form = answer(person, f"{site.url}/elog/Shift/?cmd=Logout&everywhere=1")[2]
    fields = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form))
    # Of the form for all sessions, this one alone.
    fields.pop("everywhere")
    status, headers, _ = answer(person, f"{site.url}/elog/", {**fields, "cmd": "Logout"})
    check(f"a logout leads to that of the method ({status})", headers["Location"] == "/login/oidc/sso/out" and whoami(person, site)["by"] == "guest")
    page = answer(person, f"{site.url}/login/oidc/sso/out")[2]
    to = html.unescape(re.search(r'<a href="([^"]*)"', page).group(1))
    check("which leads to the provider", "/session/end?" in to and "post_logout_redirect_uri" in to)
    status, _, page = answer(person, to)
    check(f"which asks the person ({status})", status == 200 and "xsrf" in page)
    action = html.unescape(re.search(r'<form[^>]*action="([^"]*)"', page).group(1))
    secret = re.search(r'name="xsrf" value="([^"]*)"', page).group(1)
    status, headers, _ = answer(person, action, {"xsrf": secret, "logout": "yes"})
    check(f"and leads back ({status})", status in (302, 303) and headers["Location"].startswith(f"{site.url}/login/oidc/sso/gone"))
    check("to the logbook", answer(person, headers["Location"])[1]["Location"] == "/elog/")
    begun = answer(person, f"{site.url}/login/oidc/sso")[1]["Location"]
    while "/back" not in begun and (moved := answer(person, begun)[1]["Location"]):
        begun = urllib.parse.urljoin(begun, moved)
    check("the provider asks for the password again", "/back" not in begun)
    stranger = answer(browser(), f"{site.url}/login/oidc/sso/nonsense")
    check("another step is none", stranger[0] == 404)


def signs(site):
    """Signs an entry, for which the provider has to ask for the password again."""
    owner = {"Authorization": f"Bearer {site.token}"}
    access = site.ask("GET", "/api/v1/books/Shift/access", headers=owner)[2]
    access["signing"] = {"meanings": [{"meaning": "author", "by": ["everybody"]}]}
    access["grants"].append({"to": "user:max", "may": ["read"]})
    check("signatures are allowed", site.ask("PUT", "/api/v1/books/Shift/access", access, owner)[0] == 200)
    number = site.ask("POST", "/api/v1/books/Shift/entries", {"text": "to be signed"}, owner)[2]["id"]
    person = browser()
    answer(person, to_the_code(person, site, "max"))

    def sign():
        with person.open(f"{site.url}/api/v1/whoami", timeout=60) as got:
            form = json.loads(got.read())["form"]
        body = json.dumps({"meaning": "author", "revision": 0}).encode()
        headers = {"Content-Type": "application/json", "X-Tampu-Form": form}
        request = urllib.request.Request(f"{site.url}/api/v1/books/Shift/entries/{number}/signatures", body, headers)
        try:
            with person.open(request, timeout=60) as got:
                return got.status, json.loads(got.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    status, problem = sign()
    check(f"a login alone is no proof ({problem.get('detail')})", status == 403 and "again=1" in problem["way_out"])
    page = answer(person, f"{site.url}/elog/Shift/{number}")[2]
    link = html.unescape(re.search(r'<a href="(/login/oidc/sso[^"]*)">Log in again to sign<', page).group(1))
    # Without `again` the provider knows the person, and asks for nothing.
    begun = answer(person, f"{site.url}/login/oidc/sso")[1]["Location"]
    for _ in range(5):
        if "/login/oidc/sso/back" in begun:
            break
        begun = urllib.parse.urljoin(begun, answer(person, begun)[1]["Location"])
    check("the provider's session logs in without a password", "/login/oidc/sso/back" in begun and answer(person, begun)[0] == 303)
    status, _ = sign()
    check("which is no proof either", status == 403)
    asked = []
    code = to_the_code(person, site, "max", link.removeprefix("/login/oidc/sso"), asked)
    check(f"with it the provider asks for the password ({asked})", "login" in asked)
    status, headers, _ = answer(person, code)
    check("and leads back to the entry", (status, headers["Location"]) == (303, f"/elog/Shift/{number}"))
    check("whose page has the form", 'value="Sign"' in answer(person, f"{site.url}/elog/Shift/{number}")[2])
    status, signature = sign()
    check(f"then the person signs ({status})", status == 201 and (signature["by"], signature["method"]) == ("max", "login by sso"))


def tested(site, provider):
    zoe = browser()
    page = answer(zoe, f"{site.url}/elog/?cmd=Login")[2]
    check("the form to log in has a link to the provider", re.search(r'href="/login/oidc/sso\?to=[^"]*">Log in with the lab<', page))
    code = to_the_code(zoe, site, "zoe", "?to=/elog/Shift/")
    thief = browser()
    check("a browser that has not begun the login cannot end it", answer(thief, code)[0] == 403)
    check("nor can one that has begun another one", (to_the_code(thief, site, "max"), answer(thief, code)[0])[1] == 403)
    forged = re.sub(r"iss=[^&]*", "iss=https%3A%2F%2Fevil.example", code)
    check("an answer of another issuer is refused", forged != code and answer(zoe, forged)[0] == 403)
    check("a forged code is refused", answer(zoe, re.sub(r"code=[^&]*", "code=forged", code))[0] == 403)
    status, headers, text = answer(zoe, code)
    check(f"the person is logged in and returns to the page ({status})", status == 303 and headers["Location"] == "/elog/Shift/")
    told = whoami(zoe, site)
    check("by the provider's word", (told["login"], told["by"], told["method"], told["subject"]) == ("zoe", "session", "sso (oidc)", "id-of-zoe"))
    check("the groups mean rights", told["groups"] == [{"group": "ops", "from": "operators"}] and [book["book"] for book in told["books"]] == ["Shift"])
    check("a page of the logbook is shown", answer(zoe, f"{site.url}/elog/Shift/")[0] == 200)
    check("a code is good once", answer(zoe, code)[0] == 403)

    owner = {"Authorization": f"Bearer {site.token}"}
    status, headers, _ = answer(max_ := browser(), to_the_code(max_, site, "max", "?to=https://evil.example/"))
    check("nobody is led to another site", status == 303 and headers["Location"] == "/elog/")
    users = {user["login"]: user for user in site.ask("GET", "/api/v1/users", headers=owner)[2]}
    check("an address of mail that the provider has not verified is none", (users["zoe"]["email"], users["max"]["email"]) == ("zoe@lab.example", ""))
    local = browser()
    check("a person with the login of a local user is refused", answer(local, to_the_code(local, site, "local"))[0] == 403)
    site.ask("PATCH", "/api/v1/users/zoe", {"inactive": True}, owner)
    again = browser()
    check("a disabled user stays out", answer(again, to_the_code(again, site, "zoe"))[0] == 401 and whoami(zoe, site)["by"] == "guest")
    check("an unknown method is none", answer(again, f"{site.url}/login/oidc/none")[0] == 404)

    signs(site)
    leaves(site)
    code = to_the_code(max_, site, "max")
    provider.kill()
    provider.wait()
    status, _, text = answer(max_, code)
    check(f"without the provider the answer is clear ({text.strip().splitlines()[0]})", status == 503)
    check("open sessions go on", whoami(max_, site)["login"] == "max")
    check("local users log in", site.log_in("local", PASSWORD)[0] == 200)


main()
