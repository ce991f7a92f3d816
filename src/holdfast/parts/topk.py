from __future__ import annotations

import math

import torch

from holdfast.method import Part, part
from holdfast.slots import Codec, Step, When, zeros
from holdfast.vector import Layout, Record, Vector


@part("topk", cites="karimireddy2019")
class Topk(Part, Codec):
    """Sends the share k of the update's coordinates that is largest; what is left out waits for the next time.

    p = u_i + e_i;  u_i <- top_k(p);  e_i <- p - top_k(p).
    Karimireddy et al. 2019, alg. 2 (EF-SGD), and Stich et al. 2018 for the k largest: ceil(k d) values of d shared ones
    by magnitude, with their places, in 16 bits where d allows.  feedback False: what is left out is lost.
    """

    k: float = 0.01
    feedback: bool = True
    ranges = {"k": "in (0, 1]"}
    neutral = {"k": 1.0}
    memory = {"e": When("feedback", (True,), zeros)}
    static = frozenset({"k"})
    jumps = True

    def encode(self, delta: Vector, s: Step) -> tuple[Record, Record]:
        whole = delta + s.mem["e"] if self.feedback else delta
        entries = s.layout.travelling(whole)
        many = math.ceil(round(self.k * len(entries), 9))  # 0.07 of 100 is 7
        at = entries.abs().topk(many, sorted=False).indices.sort().values
        places = at.to(torch.int16 if len(entries) <= 2**15 else torch.int32)
        sent = {"values": entries.gather(0, at), "places": places}
        return sent, {"e": whole - self.decode(sent, s.layout)} if self.feedback else {}

    def decode(self, sent: Record, layout: Layout) -> Vector:
        entries = sent["values"].new_zeros(layout.shared_size)
        return layout.arrived(entries.scatter(0, sent["places"].long(), sent["values"]))
