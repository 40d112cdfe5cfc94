import json
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from threeup_agents import specs
from threeup_agents.arena.deals import draw_deals
from threeup_agents.arena.play import Entrant, play_block
from threeup_agents.arena.provenance import agent_hash
from threeup_agents.arena.referee import AgentError
from threeup_agents.arena.run_folder import Folder
from threeup_agents.arena.terms import Terms
from threeup_agents.arena.tournament import Outcome, Settings, play_tournament
from threeup_agents.evaluation import main
from threeup_agents.programs import child
from threeup_agents.programs.program import hello
from threeup_env import ACTION_NAMES, observation_fields

PROGRAMS = Path(__file__).parents[1] / "programs"
PYTHON = f"program:{sys.executable} {PROGRAMS / 'bot.py'}"
ANSWERED_HELLO = """
import json, sys, time, os
sys.stdin.readline()
print('{"version": 1}', flush=True)
games = json.loads(sys.stdin.readline())
"""


class Lowest:
    """What the example programs play, in this process."""

    name = "lowest"

    def act(self, observations: np.ndarray, action_masks: np.ndarray) -> np.ndarray:
        """As `Agent.act`."""
        return np.asarray(action_masks.argmax(axis=1))


def script(tmp_path: Path, body: str, hello_answered: bool = True) -> str:
    """The spec of a Python program with this body, after a right answer to hello."""
    file = tmp_path / "bot.py"
    file.write_text((ANSWERED_HELLO if hello_answered else "import sys, time, os\n") + body)
    return f"program:{sys.executable} {file}"


def round_robin(broken: str, out: Path | None = None, **options: object) -> Outcome:
    """A round robin of two sound agents and this one."""
    settings = Settings((broken, "greedy", "random"), deals=4, **options)  # type: ignore[arg-type]
    return play_tournament(settings, Folder(out, {"agents": dict.fromkeys(settings.agents, "")}))


def failure(outcome: Outcome) -> AgentError:
    """The one failure of a run whose other games have all been played."""
    assert outcome.agents == ("greedy", "random")
    assert [match.line_up for match in outcome.matches] == [("greedy", "random")]
    assert outcome.matches[0].num_deals == 4
    (error,) = outcome.failures
    assert set(error.where) == {"line_up", "deal", "rotation", "step"}
    return error


@pytest.mark.parametrize("num_players", [2, 3])
@pytest.mark.parametrize("language", ["python", "javascript"])
def test_a_program_plays_what_it_says(language: str, num_players: int) -> None:
    spec = PYTHON
    if language == "javascript":
        if shutil.which("node") is None:
            pytest.skip("node isn't installed")
        spec = f"program:node {PROGRAMS / 'bot.js'}"
    decks = draw_deals(6, num_players)
    others: list[Entrant] = ["greedy"] * (num_players - 2)
    games = [play_block([bot, "careful", *others], decks) for bot in (spec, Lowest())]
    assert (games[0].course == games[1].course).all()
    assert (games[0].win_share == games[1].win_share).all()


@pytest.mark.parametrize("name", ["bot.py", "bot.js"])
def test_the_examples_are_as_short_as_is_said(name: str) -> None:
    assert len((PROGRAMS / name).read_text().splitlines()) <= 20


def test_a_round_robin_from_the_command_line_plays_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    monkeypatch.chdir(PROGRAMS)
    bot = f"program:{Path(sys.executable).name} bot.py"
    out = tmp_path / "run"
    assert main(["--agents", bot, "greedy", "random", "--deals", "4", "--out", str(out)]) == 0
    results = json.loads((out / "results.json").read_text())
    assert {agent["agent"] for agent in results["agents"]} == {bot, "greedy", "random"}
    assert results["failures"] == []


def test_hello_says_where_each_field_lies_and_what_each_action_is_called() -> None:
    words = hello(3, 7)
    assert words["actions"] == list(ACTION_NAMES)
    for name, part in observation_fields(3).items():
        assert words["layout"][name] == [part.start, part.stop]
    assert words["event"] == ["seat", "action", "turned", "drawn", "picked_up", "cleared"]
    assert (words["env"], words["num_players"], words["seed"]) == ("threeup-v1", 3, 7)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param("sys.exit(3)", "ended with exit code 3", id="exits"),
        pytest.param("os.kill(os.getpid(), 11)", "was ended by SIGSEGV", id="segfault"),
        pytest.param("raise KeyError('weights')", "KeyError: 'weights'", id="raises"),
        pytest.param(
            "print('here I am')", "expected a line with a JSON object; got b'here", id="no JSON"
        ),
        pytest.param("print('[1, 2]')", "expected a line with a JSON object", id="no object"),
        pytest.param("print('[' * 5000)", "expected a line with a JSON object", id="deep"),
        pytest.param("print('{}')", 'expected {"actions": [...]}', id="no actions"),
        pytest.param("print('{\"actions\": [true]}')", "with integers", id="a bool"),
        pytest.param("print('{\"actions\": [1, 1]}')", "array of 4 integers", id="too few"),
        pytest.param("print('{\"actions\": [-1, -1, -1, -1]}')", "got -1", id="illegal"),
        pytest.param(
            "while True: os.write(1, b'x' * 65536)", "at most 1,048,576 bytes", id="endless line"
        ),
        pytest.param("while True: os.write(1, b'{}\\n' * 9999)", "expected", id="endless lines"),
        pytest.param("os.close(1); time.sleep(60)", "closed its output", id="closes its output"),
    ],
)
def test_what_a_program_does_wrong_is_its_failure(tmp_path: Path, body: str, reason: str) -> None:
    bot = script(tmp_path, f"sys.stdin.readline()\n{body}\ntime.sleep(0.2)\n")
    error = failure(round_robin(bot))
    assert error.agent == bot
    assert reason in error.reason
    assert error.where["step"] == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param("print('{\"version\": 9}')", 'expected {"version": 1} to hello', id="version"),
        pytest.param("sys.exit(0)", "ended with exit code 0", id="exits at once"),
    ],
)
def test_a_program_that_speaks_otherwise_is_named(tmp_path: Path, body: str, reason: str) -> None:
    bot = script(tmp_path, body, hello_answered=False)
    assert reason in failure(round_robin(bot)).reason


def test_a_program_that_breaks_in_the_middle_is_named_with_its_step(tmp_path: Path) -> None:
    body = """
for number, line in enumerate(sys.stdin):
    if number == 9:
        os._exit(1)
    print(json.dumps({"actions": [legal[0] for legal in json.loads(line)["legal"]]}), flush=True)
"""
    error = failure(round_robin(script(tmp_path, body)))
    assert "exit code 1" in error.reason
    assert error.where["step"] >= 9


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("time.sleep(60)", id="sleeps"),
        pytest.param("while True: pass", id="loops"),
        pytest.param("import signal; signal.signal(15, signal.SIG_IGN); time.sleep(60)", id="deaf"),
        pytest.param(
            "import subprocess; subprocess.run([sys.executable, '-c', 'input(); input()'])",
            id="waits for its child",
        ),
    ],
)
def test_a_program_that_hangs_costs_its_time_and_no_more(tmp_path: Path, body: str) -> None:
    start = time.monotonic()
    bot = script(tmp_path, body)
    error = failure(round_robin(bot, patience=1.0, seconds_per_decision=0.05))
    assert time.monotonic() - start < 30
    seconds = float(error.reason.split("; got ")[1].split(" s ")[0])
    # One second, and a twentieth for each of its four first decisions.
    assert 1.2 <= seconds < 5


def test_a_program_that_doesnt_read_costs_its_time_and_no_more(tmp_path: Path) -> None:
    bot = script(tmp_path, "time.sleep(60)")
    decks = draw_deals(400)  # more to read than fits into a pipe
    with pytest.raises(AgentError, match=r"0.001 s per decision, and 0.5 s beside; got \d.\d s"):
        play_block([bot, "greedy"], decks, limit=1e-3, terms=Terms(patience=0.5))


def test_a_program_is_killed_with_its_children(tmp_path: Path) -> None:
    child_file = tmp_path / "child"
    body = f"""
import subprocess
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(child_file)!r}, "w").write(str(other.pid))
time.sleep(600)
"""
    failure(round_robin(script(tmp_path, body), patience=1.0, seconds_per_decision=0.01))
    status = Path("/proc") / child_file.read_text() / "stat"
    if not Path("/proc").is_dir():
        pytest.skip("no /proc on this system")
    assert not status.exists() or status.read_text().split()[2] == "Z"


def test_what_a_program_writes_to_standard_error_is_kept_in_the_folder_up_to_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "LOG_SIZE", 5000)
    body = "sys.stderr.write('weights not found\\n' + 'x' * 100_000)\nsys.exit(2)"
    round_robin(script(tmp_path, body), out=tmp_path / "run")
    (log,) = (tmp_path / "run" / "programs").iterdir()
    assert log.read_text().startswith("weights not found\n")
    assert log.stat().st_size == 5000


def test_programs_give_the_same_games_on_two_workers(tmp_path: Path) -> None:
    settings = Settings((PYTHON, "greedy"), num_players=3, deals=20)
    one = play_tournament(settings, Folder(None, {}))
    two = play_tournament(settings, Folder(None, {}), workers=2)
    for here, there in zip(one.matches, two.matches, strict=True):
        assert (here.course == there.course).all()


def test_a_program_takes_no_more_memory_than_it_may(tmp_path: Path) -> None:
    bot = script(tmp_path, "x = bytearray(1 << 30)\ntime.sleep(60)")
    with pytest.raises(AgentError, match="MemoryError"):
        play_block([bot, "greedy"], draw_deals(2), terms=Terms(memory=1 << 29))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("program:", "expected a program that can be run, e.g. 'program:python bot.py'; got noth"),
        ("program:no-such-program x", "got 'no-such-program'"),
        ("program:python 'bot.py", "expected a command; No closing quotation"),
    ],
)
def test_a_command_that_is_none_is_refused_before_any_game(spec: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        specs.make_any(spec)


def test_a_program_is_known_by_what_its_files_hold(tmp_path: Path) -> None:
    bot = script(tmp_path, "pass")
    before = agent_hash(bot, 2)
    (tmp_path / "bot.py").write_text("pass")
    assert agent_hash(bot, 2) != before
