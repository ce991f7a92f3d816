"""An error in a part names client, step and part (architecture 6), whichever executor meets it; at the server too."""

from collections.abc import Iterator

import pytest
import torch

import holdfast as hf
from holdfast.method import REGISTRY, Method, Part, part
from holdfast.slots import Correct, Round, Step, Update
from holdfast.testing import trajectory
from holdfast.vector import Record, Vector

A, B = torch.ones(3, 4), torch.arange(12.0).view(3, 4)
RUN = {
    "split": "iid(clients=4)", "cohort": 2, "model": "logreg", "rounds": 2, "steps": 3, "threads": 1,
}  # fmt: skip


@pytest.fixture(autouse=True)
def parts() -> Iterator[None]:
    before = dict(REGISTRY)

    @part("breaks")
    class Breaks(Part, Correct):
        """Fails at one client, after its first step; it looks at values, so it cannot be mapped either."""

        def correct(self, s: Step) -> Vector:
            if s.card["n"] == 5 and s.count == 1:
                raise ValueError("no such layer")
            return 0 * s.w

    @part("chooses")
    class Chooses(Part, Correct):
        """Sound, and not to be mapped."""

        def correct(self, s: Step) -> Vector:
            return s.w if s.w.sum() > 0 else 0 * s.w

    @part("later")
    class Later(Part, Update):
        """Fails at the server in the second round."""

        def update(self, delta: Vector, r: Round) -> tuple[Vector, Record]:
            if r.round.device.type != "meta" and int(r.round) == 1:
                raise ValueError
            return delta, {}

    yield
    REGISTRY.clear()
    REGISTRY.update(before)


@pytest.mark.parametrize("engine", ["loop", "batched"])
def test_client_step_and_part_are_named(engine):
    with pytest.raises(hf.Failed) as caught:
        trajectory("breaks + prox", A, B, B[0], rounds=1, steps=3, lr=0.1, sizes=[1, 5, 2], engine=engine)
    assert str(caught.value) == "client 1, local step 2 of 3, round 1: part 'breaks' in 'correct': no such layer"


def test_what_only_lanes_cannot_do_is_told_with_the_way_out():
    case = {"rounds": 1, "steps": 3, "lr": 0.1}
    assert trajectory("chooses", A, B, B[0], **case).isfinite().all()
    with pytest.raises(hf.Failed, match=r"round 1.*--engine loop: part 'chooses' in 'correct': "):
        trajectory("chooses", A, B, B[0], engine="batched", **case)


def test_a_run_names_the_part_that_cannot_be_mapped():
    with pytest.raises(hf.Refused, match=r"cannot be mapped over clients .part 'chooses' in 'correct': "):
        hf.run(method="chooses", engine="batched", **RUN)


def test_the_server_names_its_part():
    with pytest.raises(hf.Failed, match="round 2, at the server: part 'later' in 'update': ValueError"):
        hf.run(method="later", **RUN)


def test_a_part_that_never_works_is_named_before_anything_is_written(tmp_path):
    @part("never")
    class Never(Part, Correct):
        def correct(self, s: Step) -> Vector:
            return s.w.view(-1, 7, 7) @ s.w

    with pytest.raises(hf.Refused, match="part 'never' in 'correct': "):
        hf.run(method=Method((Never(),)), out=tmp_path / "a", **RUN)
    assert not (tmp_path / "a").exists()
