"""Bulk data of the driver in Python: receivers that write each transfer to a file, and senders that send files in blocks."""

import os
import threading

import tampu.bulk

# Longest waits for receivers, and for one that is stopped, in seconds. The runner waits longer.
WAITS = {"connect_wait": 50.0, "wait": 50.0, "ack_wait": 50.0, "resume": 10.0}


class Bulk:
    """The receivers and the senders of the process, by their stream. `say` prints a line for the runner."""

    def __init__(self, source, say):
        self.source = source
        self.say = say
        self.receivers = {}
        self.senders = {}

    def receive(self, command):
        """Receives a stream into a directory."""
        stream = command["name"]
        receiver = tampu.bulk.Receiver(self.source, stream)
        self.say(line="receiver", name=stream, target=receiver.target)
        self.receivers[stream] = receiver
        threading.Thread(target=self._take, args=(receiver, stream, command["directory"]), daemon=True).start()

    def _take(self, receiver, stream, directory):
        for item in receiver:
            if isinstance(item, tampu.bulk.Start):
                parameter, block = item.parameter.decode(), 0
                file = open(os.path.join(directory, parameter), "wb", buffering=0)
            elif isinstance(item, tampu.bulk.Data):
                file.write(item.bytes)
                if item.end_of_block:
                    end = item.offset + len(item)
                    self.say(line="block", name=stream, parameter=parameter, offset=str(block), length=str(end - block))
                    block = end
            elif isinstance(item, tampu.bulk.End):
                file.close()
                complete, stopped = str(item.complete).lower(), str(item.stopped).lower()
                self.say(line="end", name=stream, parameter=parameter, bytes=str(item.bytes), complete=complete, stopped=stopped)

    def open(self, command):
        """Opens a sender that follows the receivers of its stream."""
        self.senders[command["name"]] = tampu.bulk.Sender(
            self.source, command["name"], receivers=int(command["receivers"]), throttle=float(command["rate"]), **WAITS
        )

    def transfer(self, command):
        """Sends a file in blocks of these lengths."""
        flow = self.senders[command["name"]].flow("data")
        flow.start(command["parameter"])
        with open(command["file"], "rb") as file:
            for length in command["blocks"]:
                flow.send(file.read(int(length)))
        report = flow.stop()
        lacking = [one for one in report.deliveries if not one["complete"]]
        self.say(line="sent", name=command["name"], parameter=command["parameter"], bytes=str(report.bytes),
                 receivers=str(len(report.deliveries)), complete=str(len(report.deliveries) - len(lacking)),
                 why="; ".join(f"{one['receiver']['source']}: {one['why']}" for one in lacking))  # fmt: skip

    def close(self, command):
        """Closes the receiver or the sender of a stream."""
        for each in (self.receivers, self.senders):
            if command["name"] in each:
                each.pop(command["name"]).close()
