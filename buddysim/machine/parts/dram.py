"""The sections of device memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from buddysim.machine import fields
from buddysim.machine.parts.geometry import SECTOR_BYTES
from buddysim.machine.section import Duration, PositiveDuration, Rate, Section
from buddysim.machine.units import parse_time

MAX_BANKS = 2**16
"""Largest number of DRAM banks in all channels: the engine has 16 bits for the bank of a line."""


class DramTimingConfig(Section):
    """Minimum times between commands of device memory, named as in JESD235."""

    tRCD: Duration = Field(description="time from activate to column command")
    tRP: Duration = Field(description="time from precharge to activate")
    tCL: Duration = Field(description="time from read command to data")
    tCWL: Duration = Field(description="time from write command to data")
    tRAS: Duration = Field(description="time from activate to precharge")
    tCCD_S: Duration = Field(description="time between column commands to different bank groups")
    tCCD_L: Duration = Field(description="time between column commands to one bank group")
    tRRD_S: Duration = Field(description="time between activates in different bank groups")
    tRRD_L: Duration = Field(description="time between activates in one bank group")
    tFAW: Duration = Field(description="four-activate window: minimum time from an activate to the fourth after it")
    tWR: Duration = Field(description="time from the end of write data to precharge")
    tWTR: Duration = Field(description="time from the end of write data to read command")
    tRTW: Duration = Field(description="time from read command to write command")
    tRTP: Duration = Field(description="time from read command to precharge")
    tRFC: Duration = Field(description="duration of an all-bank refresh, during which all banks are closed")
    tREFI: Duration = Field(description="mean interval between refreshes; 0: no refresh")
    tRFCSB: Duration = fields.key(
        parse_time("160 ns"),
        "duration of a refresh of one bank",
        "Ramulator 2, HBM2 and HBM3: 160 ns; of no effect where all banks refresh at once",
    )


class DramConfig(Section):
    """Device memory."""

    RULES = (
        "`dram.banks` is a power of two and a multiple of `dram.bank_groups`.",
        "`dram.channels` x `dram.pseudo_channels` x `dram.banks` is at most 65,536.",
        "`dram.row_bytes` is a multiple of 32 B.",
        "`dram.write_low_watermark` is below `dram.write_high_watermark`.",
    )

    model: Annotated[str, fields.member_of("DRAM model")] = fields.key(
        "banked", "model of device memory", "the more faithful of the two"
    )
    capacity: Annotated[int, fields.size("1 MiB", "1024 TiB")] = Field(description="capacity of device memory")
    channels: Annotated[int, fields.count(1, 1024)] = Field(description="number of device memory channels")
    pseudo_channels: Annotated[int, fields.count(1, 16)] = Field(description="number of pseudo-channels per channel")
    pseudo_channel_bandwidth: Rate = Field(description="peak bandwidth of a pseudo-channel")
    load_to_use: PositiveDuration = Field(
        description="latency of an L2 miss to a closed DRAM bank on an idle machine, from issue to use"
    )
    row_bytes: Annotated[int, fields.size("32 B", "1 MiB")] = Field(description="size of a row of one DRAM bank")
    banks: Annotated[int, fields.count(1, 1024)] = Field(description="number of banks per pseudo-channel")
    bank_groups: Annotated[int, fields.count(1, 1024)] = Field(description="number of bank groups per pseudo-channel")
    write_high_watermark: Annotated[int, fields.count(1, 128)] = Field(
        description="queued write bursts of a pseudo-channel that start a write drain although reads wait"
    )
    write_low_watermark: Annotated[int, fields.count(0, 127)] = Field(
        description="queued write bursts at which a write drain ends if reads wait; the same number starts a drain if "
        "no read waits"
    )
    refresh: Annotated[str, fields.member_of("DRAM refresh")] = fields.key(
        "staggered",
        "refresh mode",
        "assumed: a controller's choice, not published; DRAMSim3 calls simultaneous refreshes impractical, for their "
        "power, yet has all channels refresh at once",
    )
    write_drain: Annotated[str, fields.member_of("write drain")] = fields.key(
        "interleaved",
        "start of write drains, and bus slots of reads during a drain",
        "assumed: a controller's choice, not published",
    )
    timing: DramTimingConfig

    @model_validator(mode="after")
    def _geometry_is_simulated(self) -> DramConfig:
        if self.banks & (self.banks - 1):
            raise ValueError(f"banks: {self.banks}: expected a power of two")
        if self.banks % self.bank_groups:
            raise ValueError(f"banks: {self.banks}: expected a multiple of bank_groups, {self.bank_groups}")
        if self.channels * self.pseudo_channels * self.banks > MAX_BANKS:
            raise ValueError(f"channels x pseudo_channels x banks: expected at most {MAX_BANKS}")
        if self.row_bytes % SECTOR_BYTES:
            raise ValueError(f"row_bytes: {self.row_bytes} B: expected a multiple of the {SECTOR_BYTES} B burst")
        if self.write_low_watermark >= self.write_high_watermark:
            raise ValueError(
                f"write_low_watermark: {self.write_low_watermark}: expected less than write_high_watermark, "
                f"{self.write_high_watermark}"
            )
        return self
