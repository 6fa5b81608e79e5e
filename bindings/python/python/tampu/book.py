"""The logbook: entries, search, attachments and threads of a hub.

    book = tampu.book.Client()
    entry = book.post("Shift", {"Author": "Zoe", "Type": "Problem"}, "**MAG-01** tripped.", attachments=["trip.png"])
    book.reply(entry, {"Author": "Max", "Type": "Fixed"}, "Breaker replaced.")
    with book.edit(entry) as draft:
        draft.attributes["Type"] = "Fixed"
    for found in book.search("mag-01 type:Fixed", books=["Shift"]):
        print(found.ref, found.by, found.text)

Without arguments a client speaks to the hub of this host, as ``tampu book`` does. All calls block, without Python's lock.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Callable, Iterable, Iterator, Mapping, Union

from ._native import BookClient, BookConflict, BookError, Locked, NotAllowed, NotFound, NotValid, Unreachable

__all__ = [
    "Attachment", "BookError", "Client", "Conflict", "Draft", "Entry", "Locked", "NotAllowed", "NotFound", "NotValid", "Ref",
    "Revision", "Unreachable",
]  # fmt: skip

#: A value of an attribute: one, or several.
Value = Union[str, "list[str]"]

#: A file to attach: a path, or a name with an open file or with bytes.
Attached = Union[str, "os.PathLike[str]", "tuple[str, BinaryIO]", "tuple[str, bytes]"]


@dataclass(frozen=True)
class Ref:
    """The identity of an entry: its book, and its number there, which is never used again."""

    book: str
    id: int

    def __str__(self) -> str:
        return f"{self.book}/{self.id}"

    @classmethod
    def parse(cls, text: str) -> Ref:
        """Reads the form ``BOOK/ID``."""
        book, _, number = text.rpartition("/")
        if not book or not number.isdigit():
            raise ValueError(f"invalid entry '{text}'; write BOOK/ID, as Shift/17")
        return cls(book, int(number))


@dataclass(frozen=True)
class Attachment:
    """A file of an entry. ``sha`` is the SHA-256 of its bytes; None for an imported file that was not found."""

    name: str
    size: int
    sha: str | None
    added: str
    _fields: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Entry:
    """An entry in its present revision. Times are texts of RFC 3339 with nanoseconds; ``when`` is a ``datetime``."""

    ref: Ref
    by: str
    date: str
    revision: int
    changed: str
    parent: int | None
    thread: int
    attributes: dict[str, Value]
    encoding: str
    text: str
    attachments: list[Attachment]
    links: list[str]

    @property
    def book(self) -> str:
        """Name of its logbook."""
        return self.ref.book

    @property
    def id(self) -> int:
        """Its number in the logbook."""
        return self.ref.id

    @property
    def when(self) -> datetime:
        """Its date."""
        return datetime.fromisoformat(self.date[:26] + "+00:00")


@dataclass(frozen=True)
class Revision:
    """A step of an entry's history: ``what`` is "posted", "edited", "moved" and so on."""

    number: int
    at: str
    by: str
    what: str
    attributes: dict[str, Value]
    text: str


class Conflict(BookConflict):
    """The entry was changed by another user meanwhile. ``mine`` is the content that was refused, ``theirs`` the entry as
    it is. To insist, edit again from ``theirs``."""

    mine: Draft
    theirs: Entry

    def __init__(self, refused: BookConflict, mine: Draft, theirs: Entry) -> None:
        super().__init__(str(refused))
        self.status, self.kind, self.right = refused.status, refused.kind, refused.right
        self.mine = mine
        self.theirs = theirs


@dataclass
class Draft:
    """The content of an entry that is being changed. Its fields can be set; ``attach`` adds a file."""

    ref: Ref
    revision: int
    attributes: dict[str, Value]
    text: str
    encoding: str
    links: list[str]
    attachments: list[Attachment]
    _client: Client = field(repr=False)

    def attach(self, file: Attached) -> None:
        """Uploads a file, which belongs to the entry once the change is saved."""
        self.attachments.append(_attachment(self._client._uploaded(file)))

    def save(self) -> int:
        """Saves the change; returns the new revision. Raises ``Conflict`` if the entry has changed since it was read."""
        content = _content(self.attributes, self.text, self.encoding, self.links, [one._fields for one in self.attachments])
        try:
            self.revision = self._client._native.edit(self.ref.book, self.ref.id, json.dumps(content), self.revision)
        except BookConflict as refused:
            raise Conflict(refused, self, self._client.read(self.ref)) from None
        return self.revision


class Editing:
    """A change in a ``with`` block: the entry is locked and read at its start, and saved and unlocked at its end.

    An exception in the block saves nothing.
    """

    def __init__(self, client: Client, ref: Ref, time: float) -> None:
        self._client = client
        self._ref = ref
        self._time = time
        self._draft: Draft | None = None

    def __enter__(self) -> Draft:
        native = self._client._native
        native.lock(self._ref.book, self._ref.id, socket.gethostname(), self._time)
        try:
            self._draft = self._client.draft(self._ref)
        except BaseException:
            native.unlock(self._ref.book, self._ref.id)
            raise
        return self._draft

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        try:
            if error is None and self._draft is not None:
                self._draft.save()
        finally:
            self._client._native.unlock(self._ref.book, self._ref.id)


class Client:
    """A client of a hub's logbooks.

    Without ``url`` it is the hub of this host in ``domain``, with the rights of its owner; ``by`` is the name that signs
    entries then. Elsewhere ``url`` is ``https://HOST:PORT``, ``token`` one of ``tampu book users token make``, and
    ``certificates`` a file of further certificates to trust, such as the domain's ``authority.crt``.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        by: str = "",
        certificates: str | os.PathLike[str] | None = None,
        domain: str | None = None,
    ) -> None:
        trusted = None if certificates is None else Path(certificates)
        self._native = BookClient(url, token, by=by, certificates=trusted, domain=domain)

    @property
    def url(self) -> str:
        """Address of the hub."""
        return self._native.url

    def books(self) -> list[dict[str, Any]]:
        """The logbooks that the caller may read, with their attributes and their number of entries."""
        found: list[dict[str, Any]] = json.loads(self._native.books())
        return found

    def post(
        self,
        book: str,
        attributes: Mapping[str, Value],
        text: str = "",
        *,
        attachments: Iterable[Attached] = (),
        links: Iterable[str] = (),
        encoding: str = "markdown",
        parent: int | None = None,
        date: datetime | None = None,
    ) -> Ref:
        """Posts an entry. It is durable, and in every search, when the call returns.

        ``attachments`` are paths, or pairs of a name and an open file or bytes. ``links`` are texts as ``run:80123``.
        ``encoding`` is that of the text: markdown, plain, elcode or html.
        """
        files = [self._uploaded(file) for file in attachments]
        entry = _content(attributes, text, encoding, links, files)
        entry.update(book=book, parent=parent)
        if date is not None:
            entry["date"] = date.astimezone().isoformat()
        return Ref(book, self._native.post(json.dumps(entry)))

    def reply(self, to: Ref | Entry, attributes: Mapping[str, Value], text: str = "", **more: Any) -> Ref:
        """Posts a reply to an entry."""
        return self.post(_ref(to).book, attributes, text, parent=_ref(to).id, **more)

    def read(self, at: Ref | Entry | str) -> Entry:
        """Reads an entry; ``at`` may be a text as ``Shift/17``."""
        return _entry(json.loads(self._native.entry(*_place(at))))

    def edit(self, at: Ref | Entry | str, *, lock: float = 600.0) -> Editing:
        """A change of an entry in a ``with`` block, locked for ``lock`` seconds at most."""
        return Editing(self, _ref(at), lock)

    def draft(self, at: Ref | Entry | str) -> Draft:
        """The content of an entry to change, without a lock. ``save`` refuses it if the entry has changed meanwhile.

        An ``Entry`` that was read before is taken as it is.
        """
        entry = at if isinstance(at, Entry) else self.read(at)
        return Draft(
            entry.ref, entry.revision, dict(entry.attributes), entry.text, entry.encoding, list(entry.links),
            list(entry.attachments), self,
        )  # fmt: skip

    def delete(self, at: Ref | Entry | str, *, replies: bool = False) -> int:
        """Deletes an entry, and with ``replies`` its replies; returns their number. The history keeps them."""
        return self._native.delete(*_place(at), replies)

    def locked(self, at: Ref | Entry | str) -> dict[str, str] | None:
        """The lock of an entry: ``by``, ``host``, ``since``, ``until``; None without one."""
        lock: dict[str, str] | None = json.loads(self._native.locked(*_place(at)))
        return lock

    def search(
        self,
        query: str = "",
        *,
        books: Iterable[str] = (),
        sort: str = "date",
        newest_first: bool = True,
        limit: int | None = None,
        page: int = 100,
        timeout: float = 5.0,
    ) -> Iterator[Entry]:
        """Entries that match a query of ``spec/book-query.md``, fetched in pages while the iterator goes on.

        ``sort`` is date, id, thread or the name of an attribute. ``timeout`` is for each page; if it is not enough, the
        iterator ends with a ``TimeoutError``, so that nobody takes a part for the whole.
        """
        asked: dict[str, Any] = {
            "query": query, "books": list(books), "sort": sort, "descending": newest_first, "after": None, "count_to": 0,
            "time": timeout,
        }  # fmt: skip
        left = limit
        while left is None or left > 0:
            asked["limit"] = page if left is None else min(page, left)
            found = json.loads(self._native.search(json.dumps(asked)))
            for hit in found["hits"]:
                yield _entry(hit["entry"])
            left = None if left is None else left - len(found["hits"])
            if found["stopped"] is not None:
                raise TimeoutError(f"the search '{query}' was stopped ({found['stopped']}); give more `timeout`, or ask for less")
            asked["after"] = found["next"]
            if asked["after"] is None:
                return

    def count(self, query: str = "", *, books: Iterable[str] = (), up_to: int = 1000) -> tuple[int, bool]:
        """The number of entries that match, and whether it is exact. Counting ends at about ``up_to``."""
        asked = {
            "query": query, "books": list(books), "sort": "date", "descending": True, "after": None, "count_to": up_to,
            "time": 5.0, "limit": 1,
        }  # fmt: skip
        count = json.loads(self._native.search(json.dumps(asked)))["count"] or {}
        return (int(count["exactly"]), True) if "exactly" in count else (int(count.get("atleast", 0)), False)

    def thread(self, at: Ref | Entry | str) -> Iterator[Entry]:
        """The entries of the thread of an entry, in its order."""
        book, number = _place(at)
        return map(_entry, _pages(lambda after: self._native.thread(book, number, after, 100)))

    def history(self, at: Ref | Entry | str) -> Iterator[Revision]:
        """The revisions of an entry, the oldest first."""
        book, number = _place(at)
        for one in _pages(lambda after: self._native.history(book, number, after, 100)):
            content = one["content"]
            yield Revision(
                one["number"], one["at"], one["by"], one["what"], _attributes(content["attributes"]), content["text"]
            )

    def download(self, entry: Entry, attachment: Attachment | str, to: str | os.PathLike[str] | BinaryIO) -> int:
        """Writes an attachment to a path or an open file, piece by piece; returns its length.

        A file at a path has its name only when it is complete.
        """
        name = attachment if isinstance(attachment, str) else attachment.name
        position = next((index for index, one in enumerate(entry.attachments) if one.name == name), None)
        if position is None:
            raise KeyError(f"entry {entry.ref} has no attachment '{name}'")
        if not isinstance(to, (str, os.PathLike)):
            return self._native.download(entry.book, entry.id, position, to)
        path = Path(to)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with open(part, "xb") as file:
                length = self._native.download(entry.book, entry.id, position, file)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        return length

    def _uploaded(self, file: Attached) -> dict[str, Any]:
        if isinstance(file, tuple):
            name, content = file
            if isinstance(content, bytes):
                import io

                content = io.BytesIO(content)
            sha, size = self._native.upload(content)
        else:
            name = os.path.basename(os.fspath(file))
            with open(file, "rb") as opened:
                sha, size = self._native.upload(opened)
        # The hub replaces the time.
        return {"name": name, "sha": sha, "size": size, "added": "1970-01-01T00:00:00Z"}


def _ref(at: Ref | Entry | str) -> Ref:
    if isinstance(at, Entry):
        return at.ref
    return Ref.parse(at) if isinstance(at, str) else at


def _place(at: Ref | Entry | str) -> tuple[str, int]:
    ref = _ref(at)
    return ref.book, ref.id


def _pages(page: Callable[[int | None], tuple[str, int | None]]) -> Iterator[Any]:
    after = None
    while True:
        text, after = page(after)
        yield from json.loads(text)
        if after is None:
            return


def _attributes(said: list[dict[str, Any]]) -> dict[str, Value]:
    return {one["name"]: one["values"][0] if len(one["values"]) == 1 else list(one["values"]) for one in said}


def _attachment(found: dict[str, Any]) -> Attachment:
    return Attachment(found["name"], found["size"], found["sha"], found["added"], found)


def _entry(found: dict[str, Any]) -> Entry:
    return Entry(
        ref=Ref(found["book"], found["id"]),
        by=found["by"],
        date=found["date"],
        revision=found["revision"],
        changed=found["changed"],
        parent=found["parent"],
        thread=found["thread"],
        attributes=_attributes(found["attributes"]),
        encoding=found["encoding"],
        text=found["text"],
        attachments=[_attachment(one) for one in found["attachments"]],
        links=[f"{one['kind']}:{one['target']}" for one in found["links"]],
    )


def _content(
    attributes: Mapping[str, Value], text: str, encoding: str, links: Iterable[str], attachments: list[dict[str, Any]]
) -> dict[str, Any]:
    said = [
        {"name": name, "values": [value] if isinstance(value, str) else list(value)} for name, value in attributes.items()
    ]
    split = []
    for link in links:
        kind, colon, target = link.partition(":")
        if not colon:
            raise ValueError(f"invalid link '{link}'; write record:ID, event:ATTRIBUTE, transfer:ID or run:NUMBER")
        split.append({"kind": kind, "target": target})
    return {"attributes": said, "encoding": encoding, "text": text, "attachments": attachments, "links": split}
