#!/usr/bin/env python3
"""The console's settings in a real browser beside a real hub: account, users, groups, logbooks, rules, usage, and the
settings of the hub with the lines that set them.

What the page changes is looked at in the hub itself. Callers without the right see neither parts nor data of others.
"""

import contextlib
import json
import pathlib
import re
import sys
import tempfile

from console_page import PASSWORD, Console, console_site
from hub import check, until
from playwright.sync_api import expect

HOSTILE = "<img src=x onerror=\"window.hit=1\">"


def enter(browser, site, login, **options):
    """A person who is logged in, at the settings."""
    console = Console(browser, site, **options)
    page = console.page
    page.goto(site)
    page.get_by_label("Login").fill(login)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_label("Password")).to_have_count(0, timeout=30000)
    page.goto(f"{site}settings")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible(timeout=30000)
    return console


def go(console, part):
    """Goes to a part of the settings."""
    console.page.get_by_role("navigation", name="Parts of the settings").get_by_role("link", name=part).click()


def read(console, path):
    """What the hub answers to this person."""
    return console.context.request.get(f"{console.site}api/v1/{path}").json()


def said(console, text="Saved."):
    """Waits for the outcome of a change."""
    expect(console.page.locator(".settings .said", has_text=text).first).to_be_visible(timeout=30000)


def account(console):
    print("one's own account")
    page = console.page
    page.get_by_label("Present password").fill("wrong")
    page.get_by_label("New password", exact=True).fill("another good password")
    page.get_by_label("New password again").fill("yet another")
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_role("alert")).to_contain_text("differ")
    page.get_by_label("Purpose").fill(HOSTILE)
    page.get_by_label("read", exact=True).check()
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Make a token").click()
    secret = page.locator(".secret")
    expect(secret).to_be_visible(timeout=30000)
    answer = console.context.request.get(f"{console.site}api/v1/whoami", headers={"Authorization": f"Bearer {secret.text_content()}"}).json()
    check("the token is the user's", answer["login"] == "zoe")
    row = page.get_by_role("row", name=re.compile("img src"))
    expect(row).to_contain_text("read")
    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name="Yes, delete the token").click()
    expect(row).to_have_count(0, timeout=30000)
    check("the hub has none", read(console, "tokens?login=zoe") == [])


def users(console):
    print("users and groups")
    page = console.page
    go(console, "Users")
    form = page.get_by_role("region", name="Add a user")
    form.get_by_label("Login").fill("max")
    form.get_by_label("Name").fill(HOSTILE)
    form.get_by_label("Password (empty: none)").fill(PASSWORD)
    form.get_by_role("button", name="Add").click()
    row = page.get_by_role("row", name=re.compile("^max"))
    expect(row).to_be_visible(timeout=30000)
    page.get_by_label("Locked out: max").check()
    said(console)
    max_ = lambda: next((user for user in read(console, "users") if user["login"] == "max"), None)
    check("the hub locks the user out", max_()["inactive"])
    page.get_by_label("Locked out: max").uncheck()
    said(console)
    refusal = {"type": "refused", "status": 409, "detail": "the last administrator stays"}
    page.route("**/api/v1/users/max", lambda route: route.fulfill(status=409, content_type="application/problem+json", body=json.dumps(refusal)))
    page.get_by_label("Administrator: max").click()
    expect(page.get_by_role("alert").filter(has_text="the last administrator stays")).to_be_visible(timeout=30000)
    expect(page.get_by_label("Administrator: max")).not_to_be_checked()
    page.unroute("**/api/v1/users/max")
    page.get_by_label("Find").fill("nobody")
    expect(page.get_by_text("No user matches.")).to_be_visible()
    page.get_by_label("Find").fill("max")
    expect(page.get_by_role("row")).to_have_count(2)
    go(console, "Groups")
    page.get_by_label("Name of the group").fill("shift")
    page.get_by_label("Members, with commas", exact=True).fill("max, zoe")
    page.get_by_role("button", name="Add a group").click()
    said(console)
    check("the hub has the group", read(console, "groups") == [{"name": "shift", "members": ["max", "zoe"]}])
    page.get_by_label("Members, with commas: shift").fill("nobody-of-this-name")
    page.get_by_role("row", name=re.compile("^shift")).get_by_role("button", name="Save").click()
    expect(page.locator(".settings").get_by_role("alert").or_(page.locator(".said", has_text="Saved."))).to_be_visible(timeout=30000)
    page.get_by_label("Members, with commas: shift").fill("max")
    page.get_by_role("row", name=re.compile("^shift")).get_by_role("button", name="Save").click()
    expect(page.locator(".settings").get_by_role("alert")).to_have_count(0, timeout=30000)
    until("the hub has its members", lambda: [group["members"] for group in read(console, "groups")] == [["max"]])


def overwritten(place, console):
    print("two administrators and one logbook")
    page = console.page
    place.run("book", "make", "Beam", "-a", "Run", "-a", "Magnet")
    go(console, "Logbooks")
    page.get_by_label("Name of the logbook").fill("Beam")
    page.get_by_role("button", name="Add a logbook").click()
    expect(page.get_by_role("alert").filter(has_text="There is a logbook Beam already")).to_be_visible(timeout=30000)
    check("it has its attributes", [one["name"] for one in read(console, "books/Beam")["attributes"]] == ["Run", "Magnet"])
    page.goto(f"{console.site}settings?part=books&book=Beam")
    expect(page.get_by_label("Name 2", exact=True)).to_have_value("Magnet", timeout=30000)
    file = pathlib.Path(place.directory) / "beam.cfg"
    file.write_text("Attributes = Run, Magnet, Shift\n", encoding="utf-8")
    place.run("book", "config", "edit", "Beam", str(file))
    place.run("book", "users", "role", "Beam", "user:max", "read")
    page.get_by_label("Name 2", exact=True).fill("Cavity")
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_role("alert").filter(has_text="Somebody has changed this logbook")).to_be_visible(timeout=30000)
    check("nothing is overwritten", [one["name"] for one in read(console, "books/Beam")["attributes"]] == ["Run", "Magnet", "Shift"])
    grants = page.get_by_role("region", name="Rights")
    page.get_by_role("button", name="Add a right").click()
    grants.get_by_role("textbox").last.fill("user:zoe")
    grants.get_by_role("button", name="Save").click()
    expect(grants.get_by_role("alert").filter(has_text="Somebody has changed this logbook")).to_be_visible(timeout=30000)
    check("no right is overwritten", "user:max" in [grant["to"] for grant in read(console, "books/Beam/access")["grants"]])
    console.axe("a logbook that somebody else has changed")
    page.get_by_role("button", name="Read it again").first.click()
    expect(page.get_by_label("Name 3", exact=True)).to_have_value("Shift", timeout=30000)
    page.get_by_label("Name 2", exact=True).fill("Cavity")
    page.get_by_role("button", name="Save").first.click()
    said(console)
    check("the change is made", [one["name"] for one in read(console, "books/Beam")["attributes"]] == ["Run", "Cavity", "Shift"])


def books(console):
    print("logbooks")
    page = console.page
    go(console, "Logbooks")
    page.get_by_label("Name of the logbook").fill("Shift")
    page.get_by_role("button", name="Add a logbook").click()
    expect(page.get_by_label("Name 1", exact=True)).to_have_value("Author", timeout=30000)
    page.get_by_role("button", name="Add an attribute").click()
    page.get_by_label("Name 2", exact=True).fill("Type")
    page.get_by_label("Kind 2").select_option("options")
    page.get_by_label("Options, one a line 2").fill("Routine\nProblem")
    page.get_by_role("button", name="Save").first.click()
    said(console)
    book = read(console, "books/Shift")
    check("the hub has the attributes", [(one["name"], one["kind"], one.get("options", [])) for one in book["attributes"]] == [("Author", "text", []), ("Type", "options", ["Routine", "Problem"])])
    page.get_by_role("button", name="Add a right").click()
    grants = page.get_by_role("region", name="Rights")
    grants.get_by_role("textbox").last.fill("group:shift")
    grants.get_by_label("write for group:shift").check()
    grants.get_by_role("button", name="Save").click()
    expect(grants.locator(".said")).to_have_text("Saved.", timeout=30000)
    check("the hub has the right", {"to": "group:shift", "may": ["read", "write"]} in read(console, "books/Shift/access")["grants"])


def rules(console):
    print("access rules and usage")
    page = console.page
    go(console, "Access rules")
    page.get_by_label(re.compile("^Who:")).fill("user:max")
    page.get_by_label(re.compile("^Verbs")).fill("read, query")
    page.get_by_label(re.compile("^What, as")).fill("log/**")
    page.get_by_label("Reason").fill("looks at logs")
    page.get_by_role("button", name="Add a rule").click()
    row = page.get_by_role("row", name=re.compile("user:max"))
    expect(row).to_contain_text("log/**", timeout=30000)
    check("the hub has the rule", any(rule["who"] == "user:max" for rule in read(console, "access")["rules"]))
    row.get_by_role("button", name="Remove").click()
    row.get_by_role("button", name=re.compile("^Yes, remove")).click()
    expect(row).to_have_count(0, timeout=30000)
    go(console, "Usage")
    expect(page.get_by_text("There are no attachments.")).to_be_visible(timeout=30000)


def hub_settings(console, file):
    print("settings of the hub")
    page = console.page
    go(console, "Hub")
    expect(page.get_by_text(f"The configuration of this hub is {file}")).to_be_visible(timeout=30000)
    row = lambda part, name: page.get_by_role("region", name=part).get_by_role("row").filter(has=page.get_by_role("rowheader", name=name, exact=True)).get_by_role("cell")
    days = row("Retention", "Keep for")
    expect(days).to_have_text(["365 days", "no limit", "line 2", "[collector]\nkeep_days = 365", "Change"])
    expect(row("Retention", "Keep at most")).to_have_text(["no limit", "no limit", "default", "[collector]\nkeep_gb = 0", "Change"])
    expect(row("Retention", "History of events").last).to_have_text("In the configuration alone: it starts and ends the archive of events.")
    expect(row("Quotas", "Files of one user").first).to_have_text("2.5 GB")
    quotas, routes = (page.get_by_role("region", name=name) for name in ("Quotas", "Routes"))
    expect(quotas.get_by_role("group", name="quota.source")).to_have_text('[[quota.source]]\nnames = "CORR/*"\nrecords_per_s = 0')
    expect(routes.get_by_role("group", name="route", exact=True)).to_contain_text('min_level = "Error"')
    expect(routes.get_by_role("group", name="target.night")).to_contain_text(HOSTILE.replace('"', '\\"'))
    expect(routes.get_by_text("line 8", exact=True)).to_be_visible()
    check("the hub has what the page shows", next(one["value"] for one in read(console, "settings")["retention"] if one["name"] == "collector.keep_days") == 365)


def hub_changes(console, place):
    print("changes of the hub's settings")
    page = console.page
    row = lambda part, name: page.get_by_role("region", name=part).get_by_role("row").filter(has=page.get_by_role("rowheader", name=name, exact=True)).get_by_role("cell")
    button = lambda name: page.get_by_role("button", name=name, exact=True)
    button("Change: Keep for").click()
    expect(page.get_by_label("New value: Keep for")).to_be_focused()
    page.keyboard.type("soon")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("collector.keep_days", timeout=30000)
    page.get_by_label("New value: Keep for").fill("3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("3 is less than keep_at_least_days", timeout=30000)
    page.get_by_label("New value: Keep for").fill("30")
    page.keyboard.press("Enter")
    # Fewer days remove records: nothing changes before somebody says so twice.
    expect(page.get_by_role("alert")).to_contain_text("'collector.keep_days' as 30 in place of 365", timeout=30000)
    check("an unconfirmed change is none", read(console, "settings")["changes"] == {})
    button("Use it, and remove records").click()
    button("Yes, use limits that remove nothing at this moment").click()
    said(console, "Changed: Keep for.")
    expect(row("Retention", "Keep for").nth(0)).to_have_text("30 days")
    expect(row("Retention", "Keep for").nth(2)).to_contain_text("changed by zoe, 20")

    button("Change: Attributes without history").click()
    page.get_by_label("New value: Attributes without history").fill("test/* , sim/*")
    page.keyboard.press("Enter")
    said(console, "Changed: Attributes without history.")
    expect(row("Retention", "Attributes without history").nth(0)).to_have_text("test/*, sim/*")
    button("Reset: Attributes without history").click()
    said(console, "Reset: Attributes without history.")

    button("Change: Quotas of some sources").click()
    page.get_by_role("button", name="Add sources").click()
    second = page.get_by_role("group", name="Sources 2")
    second.get_by_label("Names").fill("LOOP/*")
    second.get_by_label("Records a second").fill("7")
    page.get_by_role("button", name="Save the quotas").click()
    said(console, "Changed: Quotas of some sources.")
    quotas = lambda: read(console, "settings")["sources"]
    check("the hub has both quotas", [one["value"] for one in quotas()] == [{"names": "CORR/*", "records_per_s": 0}, {"names": "LOOP/*", "records_per_s": 7}])

    print("somebody else changes them meanwhile")
    button("Change: Quotas of some sources").click()
    second.get_by_label("Records a second").fill("8")
    place.run("settings", "set", "quota.source", '[{"names": "OTHER/*", "streams": 3}]')
    page.get_by_role("button", name="Save the quotas").click()
    expect(page.get_by_role("alert")).to_contain_text("Somebody else changed the settings meanwhile", timeout=30000)
    check("nothing was overwritten", [one["value"] for one in quotas()] == [{"names": "OTHER/*", "streams": 3}])
    expect(page.get_by_role("region", name="Quotas").get_by_role("group", name="quota.source")).to_contain_text("OTHER/*")
    expect(second.get_by_label("Records a second")).to_have_value("8")
    page.get_by_role("button", name="Save the quotas").click()
    said(console, "Changed: Quotas of some sources.")
    check("the second time it was", quotas()[1]["value"] == {"names": "LOOP/*", "records_per_s": 8})

    # A target with a file elsewhere is for the configuration alone.
    button("Change: Targets").click()
    page.get_by_role("button", name="Add a target").click()
    day = page.get_by_role("group", name="Target 2")
    day.get_by_label("Name", exact=True).fill("day")
    day.get_by_label("File, as in").fill("/tmp/day.log")
    page.get_by_role("button", name="Save the targets").click()
    expect(page.get_by_role("alert")).to_contain_text("[target.day] file", timeout=30000)
    day.get_by_label("File, as in").fill("")
    page.get_by_role("button", name="Save the targets").click()
    said(console, "Changed: Targets.")
    button("Change: Routes").click()
    page.get_by_role("button", name="Add a route").click()
    route = page.get_by_role("group", name="Route 2")
    route.get_by_label("From this level on").select_option("Warning")
    route.get_by_label("To the targets").fill("day")
    page.get_by_role("button", name="Save the routes").click()
    said(console, "Changed: Routes.")

    # The collector uses the routes without a restart: a record reaches the new target.
    def routed():
        place.run("log", "send", "--level", "Error", "to the day")
        return [path for path in pathlib.Path(place.directory).rglob("routes/day.log") if "to the day" in path.read_text(encoding="utf-8")]
    until("a record of the new route", routed)
    audit = lambda: place.run("log", "query", "--logger", "audit", "--contains", "PUT /settings/route").stdout
    until("the person who changed it, in the log", lambda: "zoe" in audit())

    button("Reset: Keep for").click()
    said(console, "Reset: Keep for.")
    expect(row("Retention", "Keep for").nth(2)).to_have_text("line 2")
    for name in ("Routes", "Targets", "Quotas of some sources"):
        button(f"Reset: {name}").click()
        said(console, f"Reset: {name}.")
    check("the configuration holds again", read(console, "settings")["changes"] == {})


def others(browser, site):
    print("somebody else")
    console = enter(browser, site, "max")
    page = console.page
    expect(page.get_by_role("navigation", name="Parts of the settings").get_by_role("link")).to_have_text(["My account", "Logbooks"])
    page.goto(f"{site}settings?part=users")
    expect(page.get_by_text("Only administrators of the logbook see this.")).to_be_visible(timeout=30000)
    check("the hub shows its settings to administrators alone", read(console, "settings")["status"] == 403)
    change = console.context.request.put(f"{site}api/v1/settings/collector.keep_days", data={"value": 1})
    check("and only they change them", change.status == 403)
    page.goto(f"{site}settings?part=books")
    expect(page.get_by_text("You may read this logbook, but not change it.")).to_be_visible(timeout=30000)
    check(f"no faults in the page: {console.faults}", console.faults == [])
    console.context.close()


def looks(browser, site, console):
    print("looks")
    page = console.page
    for part in ("My account", "Users", "Groups", "Logbooks", "Access rules", "Usage", "Hub"):
        go(console, part)
        expect(page.locator(".settings h1")).to_be_visible()
        page.wait_for_load_state("networkidle")
        for theme in ("dark", "night", "light"):
            page.get_by_label("Theme").select_option(theme)
            console.axe(f"{part}, theme {theme}")
    page.keyboard.press("2")
    expect(page.get_by_role("link", name="Users")).to_have_attribute("aria-current", "page")
    check("nothing of a name was run", page.evaluate("window.hit") is None)
    phone = enter(browser, site, "zoe", viewport={"width": 390, "height": 800}, has_touch=True)
    for part in ("mine", "users", "groups", "books", "rules", "usage", "hub"):
        phone.page.goto(f"{site}settings?part={part}")
        expect(phone.page.locator(".settings nav")).to_be_visible(timeout=30000)
        phone.page.wait_for_load_state("networkidle")
        check(f"a phone shows no wider page: {part}", phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
    phone.context.close()


CONFIGURATION = """\
[collector]
keep_days = 365
[[quota.source]]
names = "CORR/*"
records_per_s = 0
[book]
user_gb = 2.5
[[route]]
min_level = "Error"
to = ["night"]
[target.night]
file = "DIRECTORY/NAME"
"""


def main():
    with tempfile.TemporaryDirectory(prefix="tampu-test-") as directory, contextlib.ExitStack() as stack:
        file = pathlib.Path(directory) / "tampu.toml"
        text = CONFIGURATION.replace("DIRECTORY", directory).replace("NAME", HOSTILE.replace('"', '\\"').replace("/", ""))
        file.write_text(text, encoding="utf-8")
        place, _, site, browser = stack.enter_context(console_site("settings", "--config", str(file)))
        console = enter(browser, site, "zoe", viewport={"width": 1400, "height": 900})
        account(console)
        users(console)
        books(console)
        overwritten(place, console)
        rules(console)
        hub_settings(console, file)
        hub_changes(console, place)
        others(browser, site)
        looks(browser, site, console)
        unexpected = [fault for fault in console.faults if "status of 4" not in fault]
        check(f"no faults in the page: {unexpected}", unexpected == [])
    print(json.dumps({"passed": True}))


if __name__ == "__main__":
    sys.exit(main())
