#!/usr/bin/env python3
"""Syslog inputs under silent connections and floods: other peers are heard, the memory stays bounded, and each peer has a share of its own."""

import socket
import subprocess
import time

import loads
from attacked import Pulse, Site, check, forget_peak, memory, seeded, until


def main():
    chance = seeded("inputs")
    site = Site("inputs", config='[syslog]\nenabled = true\nudp = "127.0.0.1:0"\ntcp = "127.0.0.1:0"\nmessages_per_s_per_address = 2000')
    try:
        site.begin()
        site.find_inputs()
        with loads.under(loads.silent_streams, site, chance):
            until("the hub says that it closed silent ones", lambda: any("closed" in text for text in site.messages("syslog@*")), 60)
            subprocess.run(["logger", "--server", "127.0.0.1", "--tcp", "--port", str(site.syslog_tcp), "--rfc5424", "--tag", "other", "hi"], check=True)
            until("another peer is heard over TCP beside 400 silent connections", lambda: site.messages("other") == ["hi"])
            check("another peer is heard over TCP beside 400 silent connections", True)
        forget_peak(site.hub.pid)
        before = memory(site.hub.pid, "VmRSS")
        with Pulse(site) as pulse, loads.under(loads.syslog_flood, site, chance), loads.under(loads.far_dates, site, chance):
            with socket.create_connection(("127.0.0.1", site.syslog_tcp), source_address=("127.0.5.1", 0)) as stream:
                for number in range(500):
                    stream.sendall(f"<13>1 - quiet steady - - - record {number}\n".encode())
                    time.sleep(0.006)
        pulse.held("a flood of datagrams")
        until("each record of the quiet peer is kept", lambda: len(site.messages("steady")) == 500, 60)
        check("each record of the quiet peer is kept, once", site.messages("steady") == [f"record {number}" for number in range(500)])
        most = memory(site.hub.pid)
        check(f"memory stays bounded ({before} MiB before, peak {most} MiB)", most < before + 300)
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
