"""A wire between network namespaces that loses, delays and slows packets, or is cut, as the test says while it runs.

Packets leave one kernel through a TUN device, pass this process, and enter the other: what TCP does about loss is the kernel's own. Not
netem, which many kernels of virtual machines do not have.
"""

import fcntl
import heapq
import os
import random
import select
import socket
import struct
import threading
import time

from hub import sh

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
LONGEST = 65536
# Bytes that wait for a slow cable.
QUEUE = 128 << 10


def tun(name):
    """A device, made here; it keeps its file when it is moved to another namespace."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return file


def address(host):
    """That of the namespaces `a`, `b`, `c`."""
    return f"10.87.0.{ord(host) - ord('a') + 1}"


class Wire:
    """Joins the namespaces `a` (10.87.0.1), `b` (10.87.0.2) and further ones, which it makes.

    What one sends to a group is one packet on the wire, and goes to all others, each of which may lose it.
    """

    def __init__(self, seed, hosts="ab"):
        # `ip netns` keeps its names below /run, which is not ours everywhere.
        sh("mount -t tmpfs tampu /run && mkdir -p /run/netns")
        sh("ip link set lo up")
        self.loss, self.delay, self.up = 0.0, 0.0, True
        self.carried, self.lost = 0, 0
        # False while the network carries no packets to groups, as behind a switch that does not know them.
        self.groups = True
        # Bytes that each host has sent to groups, and the longest packet to a group that reaches a host, by its letter.
        self.to_groups, self.longest = dict.fromkeys(hosts, 0), {}
        # Bytes a second that a host can receive, by its letter; what does not fit into its queue is lost, as at a switch.
        self.rate, self.busy_until = {}, {}
        # Packets that show one of these texts, as somebody on the network would see them.
        self.secrets, self.readable = [], 0
        # Bytes that have left each host, and that have reached it.
        self.sent, self.received = dict.fromkeys(hosts, 0), dict.fromkeys(hosts, 0)
        self.chance = random.Random(seed)
        self.hosts, self.ends = {}, {}
        for host in hosts:
            end = tun(f"wire-{host}")
            self.hosts[end] = host
            self.ends[socket.inet_aton(address(host))] = end
            sh(f"ip netns add {host} && ip link set wire-{host} netns {host}")
            sh(f"ip -n {host} address add {address(host)}/24 dev wire-{host}")
            sh(f"ip -n {host} link set wire-{host} txqueuelen 2000 up && ip -n {host} link set lo up")
        threading.Thread(target=self._carry, daemon=True).start()

    def _others(self, end, packet):
        """Whom a packet is for: the one it names, or everybody."""
        to = self.ends.get(packet[16:20]) if packet[0] >> 4 == 4 else None
        if to is not None:
            return [to]
        self.to_groups[self.hosts[end]] += len(packet)
        if not self.groups:
            return []
        others = [other for other in self.hosts if other != end]
        return [other for other in others if len(packet) <= self.longest.get(self.hosts[other], LONGEST)]

    def _delivery(self, to, length, now):
        """Returns when a packet of this length reaches a host, or None if the queue of its slow cable is full."""
        rate = self.rate.get(self.hosts[to])
        if rate is None:
            return now + self.delay
        free = max(now, self.busy_until.get(to, now))
        if (free - now) * rate > QUEUE:
            return None
        self.busy_until[to] = free + length / rate
        return self.busy_until[to] + self.delay

    def _carry(self):
        under_way, number = [], 0
        while True:
            wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else 0.05
            for end in select.select(list(self.hosts), [], [], wait)[0]:
                packet = os.read(end, LONGEST)
                self.sent[self.hosts[end]] += len(packet)
                self.readable += any(secret in packet for secret in self.secrets)
                for to in self._others(end, packet):
                    if not self.up or self.chance.random() < self.loss:
                        self.lost += 1
                        continue
                    at = self._delivery(to, len(packet), time.monotonic())
                    if at is None:
                        self.lost += 1
                        continue
                    number += 1
                    heapq.heappush(under_way, (at, number, to, packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, to, packet = heapq.heappop(under_way)
                try:
                    os.write(to, packet)
                    self.carried += 1
                    self.received[self.hosts[to]] += len(packet)
                except BlockingIOError:
                    self.lost += 1
