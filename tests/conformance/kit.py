"""The conformance kit's hub and drivers, and the matrix that it prints."""

import drivers


def matrix(title, readers, rows):
    """Prints a matrix: a row for each publisher, a cell for each reader."""
    print(f"  {title}")
    width = 2 + max(len(text) for cells in rows.values() for text in [*readers, *cells.values()])
    print("  " + "publishes \\ reads".ljust(20) + "".join(reader.rjust(width) for reader in readers))
    for publisher, cells in rows.items():
        print("  " + publisher.ljust(20) + "".join(cells[reader].rjust(width) for reader in readers), flush=True)


def once(events):
    """Events without the repetition of the current value that follows a silence of the source, as on a machine that is too busy.

    Without the word, too, that an attribute has no value yet: a reader that came before the first push got it.
    """
    return [
        event for before, event in zip([None, *events], events)
        if not (before and event["reason"] == "resumed" and event["number"] == before["number"])
        and not (event["reason"] == "first" and event.get("number") == "0")
    ]  # fmt: skip


class Kit:
    """A hub and a driver for each language."""

    def __init__(self, place, hub, commands):
        self.place = place
        self.hub = hub
        self.commands = commands
        self.drivers = {}
        for language in commands:
            self.start(language)
        for language in commands:
            self.ready(language)

    def start(self, language):
        """Starts the driver of a language; it is not awaited."""
        self.drivers[language] = drivers.Driver(self.place, language, self.commands[language])

    def ready(self, language):
        """Waits until a driver takes commands."""
        driver = self.drivers[language]
        driver.until("it is ready", lambda: any(line["line"] == "ready" for line in driver.lines))
