import errno
import math
import os
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import save_file

from threeup_agents import files
from threeup_agents.files import (
    LOCK,
    OBJECT,
    TEXT,
    Field,
    atomic_write,
    check_fields,
    dict_of,
    hold,
    list_of,
    number,
    object_of,
    one_of,
    optional,
    read_json,
    whole,
    write_text,
)


def test_two_writers_of_a_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with atomic_write(path) as one, atomic_write(path) as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: write_text(path, str(i)), range(200)))
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_a_file_is_as_readable_as_open_makes_it(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        (tmp_path / "plain").write_text("")
        write_text(tmp_path / "text", "")
        with atomic_write(tmp_path / "tensors") as temporary:
            save_file({"x": np.zeros(3)}, temporary)  # which lets nobody else read it
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o666 & ~mask}


def test_a_file_that_is_written_anew_stays_as_readable_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "one")
    path.chmod(0o640)
    write_text(path, "two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.ENOSPC, "No space left on device", "file.part"),
        SafetensorError("I/O error: No space left on device"),
    ],
)
def test_a_full_disk_names_the_file_and_leaves_what_was_there(
    error: Exception, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    full = pytest.raises(OSError, match="No space left on device")
    with full as raised, atomic_write(path) as temporary:
        temporary.write_text("ne")
        raise error
    assert str(path) in str(raised.value) and ".part" not in str(raised.value)
    assert [each.read_text() for each in tmp_path.iterdir()] == ["old"]


def test_a_folder_that_is_not_there_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "none" / "file"
    with pytest.raises(FileNotFoundError, match=r"none/file'$"):
        write_text(path, "")


@pytest.mark.parametrize(
    ("field", "fitting", "other"),
    [
        (number(), [0, -1.5, 10**300], [None, "1", True, math.nan, math.inf, [1], 10**400]),
        (number(above=0), [0.1], [0, -1]),
        (number(least=0), [0], [-0.1]),
        (whole(1, 3), [1, 3], [0, 4, 2.0, True, None, "2"]),
        (one_of("relu", 1), ["relu", 1], ["tanh", True, 1.0, [], None]),
        (list_of(whole(), least=1), [[0], [1, 2]], [[], [1, "2"], {"0": 1}, "12", None]),
        (optional(TEXT), [None, ""], [0]),
        (object_of({"a": whole()}), [{"a": 1}, {"a": 1, "b": 2}], [{}, {"a": None}, [], "a"]),
        (dict_of(whole()), [{}, {"a": 1}], [{"a": "1"}, [1], None]),
        (OBJECT, [{}], [[], None]),
    ],
)
def test_a_field_fits_or_is_refused_by_name(
    field: Field, fitting: list[Any], other: list[Any]
) -> None:
    for value in fitting:
        check_fields("file", {"name": value}, {"name": field})
    for value in other:
        with pytest.raises(ValueError, match=r"^file: expected name, .*; got "):
            check_fields("file", {"name": value}, {"name": field})
    with pytest.raises(ValueError, match=r"^file: expected name, .*; got none$"):
        check_fields("file", {"another": 1}, {"name": field})


def test_an_error_shows_no_more_than_the_beginning_of_a_value() -> None:
    with pytest.raises(ValueError) as raised:
        check_fields("file", {"name": "x" * 10_000}, {"name": whole()})
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_json_of_too_many_brackets_is_refused_by_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"file\.json: expected a JSON file; too many brackets"):
        read_json(path)


def test_a_folder_is_held_by_one_at_a_time_who_is_named(tmp_path: Path) -> None:
    with hold(tmp_path / "new"):
        with pytest.raises(ValueError) as refusal, hold(tmp_path / "new"):
            pass
        assert str(refusal.value) == (
            f"{tmp_path / 'new'}: expected a folder that no other run works in; "
            f"process {os.getpid()} on {socket.gethostname()} has it"
        )
        with hold(tmp_path / "other"):
            pass
    with hold(tmp_path / "new"):
        pass


def test_a_process_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from threeup_agents.files import hold\n"
        "with hold(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)])
    assert done.returncode == -9
    assert (tmp_path / LOCK).read_text().startswith("process ")
    with hold(tmp_path):
        pass


def test_the_processes_that_a_holder_starts_do_not_hold_on_to_the_folder(tmp_path: Path) -> None:
    with hold(tmp_path):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with hold(tmp_path):
        child.communicate(b"\n")


def test_without_locks_nothing_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    with hold(tmp_path), hold(tmp_path), hold(None):
        pass
    assert list(tmp_path.iterdir()) == []
