#!/usr/bin/env python3
"""Wrong passwords of strangers neither lock an owner out nor grow the hub, and an imported login cannot be told from an unknown one by its answer."""

import base64
import contextlib
import os
import socket
import statistics
import threading
import time

import loads
from attacked import Pulse, Site, check, forget_peak, memory, seeded, until


def basic(login, password):
    """Returns the header of a login with a password."""
    return {"Authorization": "Basic " + base64.b64encode(f"{login}:{password}".encode()).decode()}


def main():
    chance = seeded("logins")
    site = Site("logins")
    try:
        site.begin()
        site.make_book()
        site.make_user("zoe", "the right password")
        passwords = os.path.join(site.directory, "users")
        with open(passwords, "w", encoding="utf-8") as file:
            # A digest as ELOG keeps it; nobody knows its password.
            file.write('<?xml version="1.0"?>\n<list>\n<user><name>max</name><password>Zc8TxTTcdSgMrVNdbsvZX1YOwhqeBPlI6cLWCVzRYV9</password>'
                       "<full_name>Max</full_name><email>m@x</email><inactive>0</inactive></user>\n</list>\n")
        site.run("book", "users", "import-elog", passwords, "--data", site.data)

        def login(name, password, source):
            return site.ask("/login", {"login": name, "password": password}, source=source)

        check("the right password is let in", login("zoe", "the right password", "127.0.0.7").status == 200)
        forget_peak(site.hub.pid)
        before = memory(site.hub.pid, "VmRSS")
        with Pulse(site) as pulse, loads.under(loads.wrong_passwords, site, chance):
            end = time.monotonic() + 6
            statuses = []
            while time.monotonic() < end:
                statuses.append(login("zoe", "the right password", "127.0.0.7").status)
                time.sleep(0.3)
        pulse.held("wrong passwords from many addresses")
        check(f"the owner is let in meanwhile, or asked to come again at once: {statuses}", set(statuses) <= {200, 503} and 200 in statuses)
        check("and afterwards", until("the owner is let in", lambda: login("zoe", "the right password", "127.0.0.7").status == 200))
        most = memory(site.hub.pid)
        check(f"passwords are hashed in memory that is used again ({before} MiB before, peak {most} MiB)", most < before + 250)

        # From one address: it waits, and what it is told does not depend on the login.
        def tries(name, net):
            """The answers of four tries from as many addresses, and the time they took."""
            answers, times = [], []
            for at in range(12):
                begun = time.monotonic()
                answer = login(name, f"bad {at}", f"127.0.{net}.{at + 1}")
                times.append((time.monotonic() - begun) * 1000)
                answers.append((answer.status, answer.body))
            return answers, statistics.median(times)

        (imported, slow), (unknown, quick) = tries("max", 20), tries("nobody", 21)
        check("an imported login and an unknown one are refused in the same words",
              {status for status, _ in imported + unknown} == {401} and {body for _, body in imported} == {body for _, body in unknown})
        print(f"  figures: imported login {slow:.1f} ms, unknown login {quick:.1f} ms (medians of 12)", flush=True)
        hard = [login("zoe", f"bad {at}", "127.0.30.1").status for at in range(12)]
        check(f"an address that goes on with wrong passwords waits: {hard}", hard[-1] == 429)
        check("the owner at another address does not", login("zoe", "the right password", "127.0.0.7").status == 200)
        # A token ends with the password that it was made under.
        token = site.make_token("zoe", ["read"])
        check("a token is accepted", site.ask("/whoami", token=token).status == 200)
        site.must("/users/zoe/password", {"password": "another good password"}, "PUT")
        answer = site.ask("/whoami", token=token)
        check(f"a token ends with a new password: {answer.status}", answer.status == 401)
        session = login("zoe", "another good password", "127.0.0.7")
        cookie, form = session.headers["set-cookie"].split(";")[0], session.json().get("form", "")
        made = site.ask("/tokens", {"comment": "for ever", "may": ["read"]}, headers={"Cookie": cookie, "X-Tampu-Form": form})
        check(f"a session without the password makes no token: {made.status}", made.status in (401, 403, 422, 400))
        check("a session without its form token changes nothing",
              site.ask("/searches/x", {"q": "x"}, "PUT", headers={"Cookie": cookie}).status in (401, 403))
        check("the login in one word, basic", site.ask("/whoami", headers=basic("zoe", "another good password")).status == 200)
        site.alive()
    finally:
        site.close()


def silent_provider():
    """A provider of identities that takes connections and never answers, and guests who begin logins there."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    issuer, asked = f"http://127.0.0.1:{listener.getsockname()[1]}", []

    def take():
        with contextlib.suppress(OSError):
            while True:
                asked.append(listener.accept()[0])

    threading.Thread(target=take, daemon=True).start()
    site = Site("logins-provider", book=f'[[book.login]]\nname = "sso"\n[book.login.oidc]\nissuer = "{issuer}"\nclient_id = "tampu"\n')
    try:
        site.begin()
        site.make_user("zoe", "the right password")
        ended, begun = threading.Event(), []

        def guest(source):
            while not ended.is_set():
                begun.append(site.ask("/login/oidc/sso", source=source, port=site.port).status)

        guests = [threading.Thread(target=guest, args=(f"127.0.40.{at % 2 + 1}",), daemon=True) for at in range(8)]
        for one in guests:
            one.start()
        until("guests wait for the provider", lambda: len(begun) > 8)
        times, statuses = [], []
        for _ in range(10):
            at = time.monotonic()
            statuses.append(site.ask("/login", {"login": "zoe", "password": "the right password"}, source="127.0.0.7").status)
            times.append(time.monotonic() - at)
        ended.set()
        for one in guests:
            one.join()
        check(f"users of the logbook log in while a provider is silent: {statuses}, at most {max(times):.1f} s", statuses == [200] * 10)
        check(f"guests are told so: {len(begun)} answers, {sorted(set(begun))}", set(begun) == {503})
        check(f"most of them at once: {len(asked)} requests to the provider", len(asked) * 3 < len(begun))
        site.alive()
    finally:
        site.close()
        # Wakes the thread that takes connections.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for one in asked:
            one.close()


if __name__ == "__main__":
    main()
    silent_provider()
