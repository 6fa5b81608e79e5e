"""The logbook of a real hub from Python: entries, changes, searches, files, and what is refused."""

import hashlib
import io
import os
import resource

import pytest

import tampu.book as book


@pytest.fixture(scope="module")
def shift(place):
    place.run("book", "make", "Shift", "-a", "Author", "-a", "Type=Routine,Problem,Fixed", "--required", "Author")
    return book.Client(by="zoe")


def test_an_entry_is_written_answered_and_read(shift, place):
    first = shift.post(
        "Shift", {"Author": "Zoe", "Type": "Problem"}, "**MAG-01** tripped", links=["run:80123"], encoding="markdown"
    )
    assert str(first) == "Shift/1"
    reply = shift.reply(first, {"Author": "Max", "Type": "Fixed"}, "breaker replaced")
    entry = shift.read("Shift/1")
    assert (entry.ref, entry.book, entry.id, entry.by, entry.revision) == (first, "Shift", 1, "zoe", 0)
    assert (entry.attributes, entry.text) == ({"Author": "Zoe", "Type": "Problem"}, "**MAG-01** tripped")
    assert (entry.links, entry.attachments, entry.parent, entry.thread) == (["run:80123"], [], None, 1)
    assert entry.when.utcoffset().total_seconds() == 0
    assert [(one.id, one.parent) for one in shift.thread(reply)] == [(1, None), (2, 1)]
    # The command reads the same.
    assert "breaker replaced" in place.run("book", "show", str(reply)).stdout
    names = {one["name"]: one["entries"] for one in shift.books()}
    assert names["Shift"] == 2


def test_a_change_is_locked_saved_and_in_the_history(shift):
    at = shift.post("Shift", {"Author": "Zoe", "Type": "Problem"}, "one")
    other = book.Client(by="max")
    with shift.edit(at) as draft:
        draft.attributes["Type"] = "Fixed"
        draft.text += ", two"
        draft.attach(("trend.txt", b"1 2 3"))
        assert shift.locked(at)["by"] == "zoe"
        with pytest.raises(book.Locked, match="zoe") as raised, other.edit(at):
            pass
        assert (raised.value.status, raised.value.kind) == (423, "locked")
    assert shift.locked(at) is None
    entry = shift.read(at)
    assert (entry.revision, entry.text, entry.attributes["Type"]) == (1, "one, two", "Fixed")
    assert [one.name for one in entry.attachments] == ["trend.txt"]
    # A block that fails changes nothing, and leaves no lock.
    with pytest.raises(ZeroDivisionError), shift.edit(at) as draft:
        draft.text = "never"
        raise ZeroDivisionError
    assert shift.read(at) == entry and shift.locked(at) is None
    assert [(one.number, one.what, one.text) for one in shift.history(at)] == [(0, "posted", "one"), (1, "edited", "one, two")]


def test_a_conflict_has_both_versions(shift):
    at = shift.post("Shift", {"Author": "Zoe"}, "first")
    mine, theirs = shift.draft(at), book.Client(by="max").draft(at)
    theirs.text = "theirs"
    assert theirs.save() == 1
    mine.text = "mine"
    with pytest.raises(book.Conflict) as raised:
        mine.save()
    conflict = raised.value
    assert isinstance(conflict, book.BookError) and (conflict.status, conflict.kind) == (412, "changed")
    assert (conflict.mine.text, conflict.theirs.text, conflict.theirs.revision) == ("mine", "theirs", 1)
    # To insist is to edit again from what is there.
    again = shift.draft(conflict.theirs)
    again.text = f"{conflict.theirs.text} and {conflict.mine.text}"
    assert again.save() == 2


def test_a_search_goes_through_pages(shift):
    for number in range(25):
        shift.post("Shift", {"Author": "pager", "Type": "Routine"}, f"page {number}")
    found = list(shift.search("author:pager", books=["Shift"], page=10, newest_first=False))
    assert [one.text for one in found] == [f"page {number}" for number in range(25)]
    assert [one.text for one in shift.search("author:pager", page=2, limit=3)] == ["page 24", "page 23", "page 22"]
    assert shift.count("author:pager") == (25, True)
    assert list(shift.search("author:nobody")) == []
    with pytest.raises(book.NotValid) as raised:
        next(shift.search('author:"'))
    assert raised.value.status in (400, 422)


def test_files_go_up_and_down_in_pieces(shift, tmp_path):
    class Pattern(io.RawIOBase):
        """32 MB that are nowhere."""

        left = 32 << 20

        def read(self, most=-1):
            given = bytes(min(most, self.left))
            self.left -= len(given)
            return given

    (tmp_path / "trip.png").write_bytes(b"not a picture")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    large = shift.post("Shift", {"Author": "Zoe"}, "files", attachments=[tmp_path / "trip.png", ("zeros.bin", Pattern())])
    entry = shift.read(large)
    assert [(one.name, one.size) for one in entry.attachments] == [("trip.png", 13), ("zeros.bin", 32 << 20)]
    assert entry.attachments[0].sha == hashlib.sha256(b"not a picture").hexdigest()

    class Count(io.RawIOBase):
        total = 0

        def write(self, data):
            self.total += len(data)
            return len(data)

    sink = Count()
    assert shift.download(entry, "zeros.bin", sink) == sink.total == 32 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 << 10
    assert shift.download(entry, entry.attachments[0], tmp_path / "again.png") == 13
    assert (tmp_path / "again.png").read_bytes() == b"not a picture"
    assert sorted(os.listdir(tmp_path)) == ["again.png", "trip.png"]
    with pytest.raises(KeyError, match="no attachment 'other'"):
        shift.download(entry, "other", sink)

    class Broken(io.RawIOBase):
        def read(self, most=-1):
            raise OSError("the disk is gone")

        def write(self, data):
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is gone"):
        shift.post("Shift", {"Author": "Zoe"}, attachments=[("broken", Broken())])
    with pytest.raises(OSError, match="the disk is full"):
        shift.download(entry, "zeros.bin", Broken())


def test_what_is_refused_says_why(shift, place):
    with pytest.raises(book.NotFound, match="Shift/99999") as raised:
        shift.read("Shift/99999")
    assert (raised.value.status, raised.value.kind, raised.value.right) == (404, "not-there", None)
    with pytest.raises(book.NotValid, match="Author"):
        shift.post("Shift", {"Type": "Problem"}, "without an author")
    with pytest.raises(book.NotValid, match="Type"):
        shift.post("Shift", {"Author": "Zoe", "Type": "Odd"}, "not one of the options")
    with pytest.raises(ValueError, match="invalid link"):
        shift.post("Shift", {"Author": "Zoe"}, links=["nothing"])
    with pytest.raises(ValueError, match="invalid entry"):
        shift.read("Shift")
    with pytest.raises(book.BookError, match="no hub of domain 'elsewhere'"):
        book.Client(domain="elsewhere")
    with pytest.raises(book.Unreachable, match="127.0.0.1:1"):
        book.Client("http://127.0.0.1:1").books()
    at = shift.post("Shift", {"Author": "Zoe"}, "to delete")
    assert shift.delete(at) == 1
    with pytest.raises(book.NotFound):
        shift.read(at)


def test_a_token_may_do_what_it_says(shift, place):
    # With users the hub asks for logins; this is the last test of the file.
    place.run("book", "users", "add", "robot", "--no-password", "--admin")
    made = place.run("book", "users", "token", "make", "robot", "--may", "read", "--book", "Shift")
    robot = book.Client(shift.url, made.stdout.strip())
    assert robot.read("Shift/1").id == 1
    with pytest.raises(book.NotAllowed, match="the right 'write'") as raised:
        robot.post("Shift", {"Author": "robot"}, "never")
    assert (raised.value.status, raised.value.kind, raised.value.right) == (403, "no-right", "write")
    with pytest.raises(book.NotAllowed) as raised:
        book.Client(shift.url, "tampu_wrong").books()
    assert raised.value.status == 401
