"""Killed (SIGKILL) at random moments, and before every single write, then resumed: the same bits (issue 2)."""

import json
import random
import time

import pytest

DIGITS = "--split 'dirichlet(alpha=0.3, clients=20)' --cohort 5 --epochs 1 --threads 1"
BATCHNORM = f"{DIGITS} --model \"cnn(norm='bn', width=4)\" --rounds 30 --checkpoint-every 3"
SMALL = f"{DIGITS} --model logreg --rounds 3 --checkpoint-every 1"


class Harness:
    """A run that is killed again and again; when it survives to its end, it is compared and started anew."""

    def __init__(self, forks, folder, line, tmp_path):
        self.forks, self.folder, self.line, self.cwd = forks, folder, line, tmp_path
        self.kills, self.landed, times = 0, [], []
        for name in ("twin", "whole"):
            began = time.perf_counter()
            done = forks.run(f"{line} --out {name}", tmp_path)
            times.append(time.perf_counter() - began)
            assert done.code == 0, done.err
        self.took, self.whole = min(times), folder("whole")
        self.train = self.took * sum(
            v for row in self.whole.metrics for k, v in row.items() if k.endswith("_seconds")
        ) / times[1]  # fmt: skip

    def attempt(self, name, delay):
        """Starts or resumes, and kills after so many seconds (None: lets it end). True if it ended by itself."""
        there = (self.folder(name).path / "run.toml").exists()
        pid = self.forks.start(f"{self.line} --out {name}" + " --resume" * there, self.cwd)
        if delay is None:
            code = self.forks.wait(pid)
        else:
            time.sleep(delay)
            code = self.forks.kill(pid)
        if code == -9:
            self.kills += 1
            self.landed.append("before run.toml" if not self.folder(name).path.exists() else self.done(name))
            return False
        assert code == 0, (self.cwd / "log.err").read_text()
        return True

    def done(self, name):
        """Rounds that a resumed run need not do again."""
        kept = self.folder(name).path / "checkpoint"
        whole = [int(p.name) for p in kept.iterdir() if p.name.isdigit()] if kept.exists() else [0]
        return max(whole, default=0)

    def left(self, name):
        """Seconds until the expected end of an attempt that starts now."""
        rounds = len(self.whole.metrics)
        return self.took - self.train * self.done(name) / rounds

    def compare(self, name):
        killed = self.folder(name)
        assert killed.same == self.whole.same
        assert killed.bits == self.whole.bits
        assert killed.path.joinpath("split.json").read_bytes() == self.whole.path.joinpath("split.json").read_bytes()

    def go(self, kills, seed):
        draw, life = random.Random(seed), 0
        while self.kills < kills:
            name = f"life{life}"
            if self.attempt(name, draw.uniform(0, self.left(name))):
                self.compare(name)
                life += 1
                self.took, self.train = 0.8 * self.took, 0.8 * self.train  # the machine has become faster
        self.attempt(f"life{life}", None)
        self.compare(f"life{life}")
        print(f"{self.kills} kills in {life + 1} runs; whole rounds on disk at each: {self.landed}")
        assert self.kills == kills


def test_killed_20_times_with_client_state_and_batchnorm(forks, folder, tmp_path):
    # Issue 2, "What it must show": 20 SIGKILLs, the bits of an undisturbed run, with SCAFFOLD and FedDyn client
    # state and BatchNorm buffers. feddc is dyn + scaffold (decisions.md 2).
    harness = Harness(forks, folder, f"run --method feddc {BATCHNORM}", tmp_path)
    held = set(harness.whole.bits)
    assert any(k.startswith("memory/dyn/") for k in held) and any(k.startswith("memory/scaffold/") for k in held)
    assert any(k.endswith("running_var") for k in held)
    harness.go(kills=20, seed=1)


def test_killed_5_times_with_the_loop_and_fedsmoo(forks, folder, tmp_path):
    # As above, for the other executor and for client state that starts a local carry (decisions.md 14).
    Harness(forks, folder, f"run --method fedsmoo --engine loop {BATCHNORM} --rounds 15", tmp_path).go(kills=5, seed=2)


def test_killed_5_times_without_client_state_and_with_a_padded_chunk(forks, folder, tmp_path):
    # 5 clients in lanes of 3: the last chunk is padded. decisions.md 3: the plan is used again, so the bits are equal.
    harness = Harness(
        forks, folder, f"run --method fedsam --engine batched --lanes 3 {BATCHNORM} --rounds 15", tmp_path
    )
    assert not any(k.startswith("memory/") for k in harness.whole.bits)
    harness.go(kills=5, seed=3)


def test_killed_before_every_file_operation(forks, folder, tmp_path):
    # product.md, "stop-and-resume to the same bits, client state included": no moment may be the wrong one.
    # The process kills itself just before its n-th open, rename, remove, rmdir or mkdir below --out, for n = 1, 2, ...
    line = f"run --method scaffold {SMALL}"
    assert forks.run(f"{line} --out whole", tmp_path).code == 0
    whole, n = folder("whole"), 0
    while True:
        n += 1
        name = f"at{n}"
        if forks.run(f"{line} --out {name}", tmp_path, die=(n, str(tmp_path / name))).code == 0:
            break
        there = (tmp_path / name / "run.toml").exists()
        again = forks.run(f"{line} --out {name}" + " --resume" * there, tmp_path)
        assert again.code == 0, f"killed before file operation {n}: {again.err}"
        assert folder(name).same == whole.same, f"killed before file operation {n}"
        assert folder(name).bits == whole.bits, f"killed before file operation {n}"
    assert n > 20, "the hook saw too few operations to mean anything"


def test_killed_twice_while_a_checkpoint_is_written_keeps_two_whole_ones(hold, folder):
    # checkpoint.py keeps the last two whole checkpoints, so that a damaged newest one has one before it. What a kill
    # left behind (00000002.999.tmp) is no checkpoint and may not push a whole one out.
    line = f"run --method scaffold {SMALL} --out a"
    assert hold(f"{line} --rounds 2").code == 0
    torn = folder("a").path / "checkpoint" / "00000003.999.tmp"
    torn.mkdir()
    (torn / "state.safetensors").write_bytes(b"half")
    assert hold(f"{line} --resume").code == 0
    assert [p.name for p in folder("a").checkpoints] == ["00000002", "00000003"]
    assert not torn.exists()


def test_what_a_kill_left_beside_the_files_is_removed(hold, folder):
    # A folder holds what product.md lists. Files that were being written when the run was killed are rubbish then.
    line = f"run {SMALL} --out a"
    assert hold(f"{line} --rounds 1").code == 0
    for name in ("run.toml.999.tmp", "metrics.jsonl.999.tmp", ".split.json.999.part"):
        (folder("a").path / name).write_text("half")
    assert hold(f"{line} --resume").code == 0
    assert sorted(p.name for p in folder("a").path.iterdir()) == [
        "checkpoint",
        "metrics.jsonl",
        "run.toml",
        "split.json",
    ]


def test_a_line_that_a_kill_cut_short_is_done_again(hold, folder):
    # metrics.jsonl is appended to; a kill or a full disk can leave half a line, with or without rounds after the
    # checkpoint.
    line = f"run --method scaffold {SMALL} --rounds 5 --checkpoint-every 2"
    assert hold(f"{line} --out whole").code == 0
    assert hold(f"{line} --out a").code == 0
    path = folder("a").path / "metrics.jsonl"
    rows = path.read_text().splitlines(keepends=True)
    for checkpoint in folder("a").checkpoints[1:]:
        checkpoint.rename(folder("a").path / "away")
    path.write_text("".join(rows[:4]) + rows[4][:25])
    assert hold(f"{line} --out a --resume").code == 0
    assert folder("a").same == folder("whole").same
    assert folder("a").bits == folder("whole").bits


def test_a_row_lost_from_metrics_is_told(hold, folder):
    # A row that is gone cannot be computed again after its checkpoint: going on in silence gives a table with a hole.
    line = f"run {SMALL} --out a"
    assert hold(f"{line} --rounds 2").code == 0
    path = folder("a").path / "metrics.jsonl"
    path.write_text(path.read_text().splitlines(keepends=True)[1])
    done = hold(f"{line} --resume")
    told = done.code == 2 or "metrics.jsonl" in done.err
    assert told, f"exit {done.code}, rows {[row['round'] for row in folder('a').metrics]}, said: {done.err}"


def test_state_json_is_covered_by_a_hash(hold, folder):
    # checkpoint.py: "whole or not there: safetensors and JSON, hashed". `ids` says whose memory each row is: exchange
    # two of them and two clients go on with each other's control variates.
    line = f"run --method scaffold {SMALL} --out a"
    assert hold(f"{line} --rounds 2").code == 0
    path = folder("a").checkpoints[-1] / "state.json"
    facts = json.loads(path.read_text())
    facts["ids"][:2] = facts["ids"][1::-1]
    path.write_text(json.dumps(facts))
    done = hold(f"{line} --resume")
    assert str(path.parent.name) in done.err, f"going on as if nothing were: {done.err}"


@pytest.mark.parametrize("field", ["round", "notes", "version"])
def test_a_changed_state_json_never_gives_other_bits_in_silence(hold, folder, field):
    line = f"run --method scaffold {SMALL} --out a"
    assert hold(f"{line[:-1]}whole").code == 0
    assert hold(f"{line} --rounds 2").code == 0
    path = folder("a").checkpoints[-1] / "state.json"
    facts = json.loads(path.read_text())
    facts[field] = {"round": 1, "notes": {"a": 1}, "version": 99}[field]
    path.write_text(json.dumps(facts))
    done = hold(f"{line} --resume")
    assert done.code == 0, done.err
    assert folder("a").bits == folder("whole").bits and folder("a").same == folder("whole").same
