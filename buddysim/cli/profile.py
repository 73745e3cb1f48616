"""``python -m buddysim profile``: target ratios of a trace's allocations, and the sizes they depend on."""

from __future__ import annotations

import argparse

NAME = "profile"
TASK = "prepare"
ORDER = 240
HELP = """choose a target ratio for each allocation and write a targets file

Every entry of every snapshot is compressed, unless the trace has its size. A target ratio is the largest at which the
fraction of entries that overflow stays within the Buddy Threshold."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.base.option import field_options
    from buddysim.buddy import ProfileOptions
    from buddysim.cli.completion import completes
    from buddysim.cli.json_output import add_json_argument
    from buddysim.cli.option_arguments import add_options

    completes(parser.add_argument("file", metavar="FILE", help="the trace file"), "file")
    options = field_options(ProfileOptions)
    del options["eight_byte_class"]  # a property of machines
    add_options(parser, options)
    parser.add_argument("--partial", action="store_true", help="accept a trace file whose end is missing")
    parser.add_argument("-o", "--output", metavar="FILE.toml", help="targets file to write, for run --targets")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    from buddysim.base.option import field_options
    from buddysim.base.output import check_outputs
    from buddysim.buddy import ProfileOptions, profile_with
    from buddysim.cli.json_output import is_on_stdout, json_file, write_plain_json
    from buddysim.report.profile_screen import describe_options, profile_parts
    from buddysim.report.screen import print_screen
    from buddysim.trace import open_trace
    from buddysim.trace.partial import partial_contents, require_complete

    check_outputs([args.output, json_file(args)], [args.file])
    with open_trace(args.file) as trace:
        require_complete(trace, args.partial)
        contents = partial_contents(trace)
        arguments = {name: getattr(args, name) for name in field_options(ProfileOptions) if name in args}
        options = ProfileOptions(**arguments)
        profile = profile_with(trace, options)
        if args.output is not None:
            profile.targets.save(args.output, f"made from the trace {trace.fingerprint}\n{describe_options(profile)}")
    write_plain_json(args, profile.to_dict())
    if is_on_stdout(args):
        return 0
    partial = [f"PARTIAL TRACE: {contents}"] if contents is not None else []
    saved = f"targets written to {args.output}" if args.output is not None else "targets not saved (-o FILE)"
    print_screen([*partial, *profile_parts(profile, saved)])
    return 0
