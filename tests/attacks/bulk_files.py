#!/usr/bin/env python3
"""A receiver of bulk data writes below its directory only: no file is replaced, no dot-file made, no link followed, whatever the sender names."""

import os
import subprocess

from attacked import Site, check, open_modes, seeded, until


def main():
    seeded("bulk_files")
    os.umask(0o022)
    site = Site("bulkfiles", roles='["node"]', book="")
    try:
        site.up("--config", site.config, "--roles", "node")
        there = os.path.join(site.directory, "there")
        outside = os.path.join(site.directory, "outside")
        folder = os.path.join(site.directory, "names")
        for path in (there, outside, folder, os.path.join(folder, ".ssh"), os.path.join(folder, "sub")):
            os.mkdir(path)
        names = [".bashrc", ".ssh/authorized_keys", "taken.txt", "-rf", "esc\x1b[2J.txt", "line\nbreak.txt", "turned\u202egpj.exe", "ü" * 120, "sub/file.txt", "link/file.txt", "good.txt"]
        os.mkdir(os.path.join(folder, "link"))
        for name in names:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("of the sender")
        with open(os.path.join(there, "taken.txt"), "w", encoding="utf-8") as file:
            file.write("was here before")
        os.symlink(outside, os.path.join(there, "link"))
        os.symlink(os.path.join(outside, "new.txt"), os.path.join(there, "good.txt.part"))
        receiver = site.start("bulk", "recv", "--stream", "s", "-o", there, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.chdir(folder)
        sent = []
        for name in names:
            sent.append((name, site.run("bulk", "send", "--stream", "s", "--wait", "20s", "--", name, check=False)))
        folder_sent = site.run("bulk", "send", "--stream", "s", "--", ".", check=False)
        print(f"  a whole folder: {folder_sent.returncode}", flush=True)
        until("a plain file arrives", lambda: os.path.exists(os.path.join(there, "good.txt")))
        receiver.terminate()
        _, said = receiver.communicate(timeout=60)
        made = sorted(os.path.join(folder, name)[len(there) + 1:] for folder, _, files in os.walk(there) for name in files)
        check(f"files below the directory: {made}", "good.txt" in made)
        check("no dot-file was made", not [name for name in made if any(part.startswith(".") for part in name.split("/")) and not name.endswith(".part")])
        with open(os.path.join(there, "taken.txt"), encoding="utf-8") as file:
            check("a file that was there is as it was", file.read() == "was here before")
        check(f"nothing outside: {os.listdir(outside)}", not os.listdir(outside))
        check(f"the sender is told of each refusal: {[(name[:12], done.returncode) for name, done in sent]}",
              all(done.returncode != 0 for name, done in sent if name in (".bashrc", "taken.txt")) and folder_sent.returncode != 0)
        shown = said + "".join(done.stdout + done.stderr for _, done in sent)
        check("names do not drive the terminal", "\x1b" not in shown and "\u202e" not in shown)
        found = [path for path in open_modes(there) if "taken" not in path]
        check(f"files are for the receiver's user alone: {found}", not found)
    finally:
        site.close()


if __name__ == "__main__":
    main()
