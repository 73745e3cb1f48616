"""Protocols of the link: one file each, chosen by `link.protocol` (`LinkProtocolBase` says what a file has)."""

from buddysim.replay.component.registry import component_registry

REGISTRY = component_registry("link protocol", __name__, "LinkProtocol")
