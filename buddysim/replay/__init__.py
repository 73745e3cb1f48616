"""The engine: replays a trace on a machine under a scheme."""

from buddysim.replay.result import Result
from buddysim.replay.scheme import scheme_names
from buddysim.replay.simulate import simulate

__all__ = ["Result", "scheme_names", "simulate"]
