"""The engine: replays a trace on a machine under a scheme."""

from buddysim.replay.driver import simulate
from buddysim.replay.engine.scheme import scheme_names
from buddysim.replay.result import Result

__all__ = ["Result", "scheme_names", "simulate"]
