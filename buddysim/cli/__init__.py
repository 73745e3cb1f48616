"""The command line: ``python -m buddysim COMMAND``, one module of this folder per command.

A command is a module with ``NAME``, ``TASK``, ``HELP``, ``add_arguments(parser)`` and ``run(args) -> int``: the help
screen of the program lists it under its task. It raises `BuddysimError` for what a user did wrong; everything else
about errors is decided in `base.boundary`. Arguments are added to a command's parser when they are needed: they come
from registries whose modules take time to import.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from types import ModuleType
from typing import Any, NoReturn

import buddysim
from buddysim.base import boundary, plugins, signals
from buddysim.base.boundary import EXIT_USER_ERROR
from buddysim.base.budget import OPTION, larger_budget
from buddysim.base.hints import hint, shortened, shortened_name
from buddysim.base.output import remove_parts
from buddysim.base.registry import Registry
from buddysim.base.returned import returned
from buddysim.base.terminal import drop_unwritten, say
from buddysim.cli.stored_completion import store_script, stored_script

EXIT_BROKEN_PIPE = 128 + signal.SIGPIPE

_COLLECT_EVERY = 1_000_000
"""New objects between two searches for cycles: simulators make millions of tuples, and hardly a cycle."""

#: What a sub-command has.
SUBCOMMAND = ("NAME", "HELP", "add_arguments", "run")
CONTRACT = ("TASK", *SUBCOMMAND)
COMPLETION, INSTALL = "--print-completion", "--install-completion"


def _adopt(module: ModuleType) -> Mapping[str, ModuleType]:
    return {str(module.NAME): module} if all(hasattr(module, name) for name in CONTRACT) else {}


#: The commands by name.
REGISTRY: Registry[ModuleType] = Registry("command", __name__, CONTRACT, _adopt)


class Finished(SystemExit):
    """The arguments are wrong, or were answered by a help screen: the command has ended."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong with the arguments in the one line that every other error has."""

    def error(self, message: str) -> NoReturn:
        command = " ".join(self.prog.split()[1:])
        prefix = f"{command}: " if command else ""
        say(f"error: {prefix}{message} (try: {self.prog} --help)")
        raise Finished(EXIT_USER_ERROR)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"{action.dest} {shortened(value)}: unknown{hint(value, known) or _one_of(known)}")
        raise argparse.ArgumentError(action, f"{shortened(value)}{_one_of(known)}{hint(str(value), known)}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Refuse an empty text, which an unset variable of a shell leaves: no option has a meaning for it.

        Words of another program's command line are its own.
        """
        words = [] if action.nargs in (argparse.PARSER, argparse.REMAINDER) else arg_strings
        if "" in words:
            raise argparse.ArgumentError(action, "an empty text (a variable that isn't set?)")
        return super()._get_values(action, arg_strings)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        if message:
            say(message)
        sys.stdout.flush()
        raise Finished(status)


def _one_of(names: Sequence[str]) -> str:
    return f": expected one of {', '.join(names)}"


_HELP_WIDTH = 78


class ProgramParser(Parser):
    """The parser of the program, whose help screen lists the commands by task."""

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage("buddysim [-h] [--version] [--plugin FILE] COMMAND ...", [], ())
        formatter.add_text(self.description)
        for task, names in commands_by_task().items():
            formatter.start_section(task)
            width = max(map(len, REGISTRY.names()))
            for name in names:
                formatter._add_item(_help_line, [name, REGISTRY.find(name).HELP.partition("\n")[0], width])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments(
            action for action in self._actions if not isinstance(action, argparse._SubParsersAction)
        )
        formatter.end_section()
        formatter.add_text("Options of a command: buddysim COMMAND --help")
        return formatter.format_help()


def _refill(text: str) -> str:
    """A description with its paragraphs filled to the width of a screen; indented lines stay as they are."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        paragraph if any(line.startswith(" ") for line in paragraph.split("\n")) else fill(paragraph, _HELP_WIDTH)
        for paragraph in paragraphs
    )


def fill_heading(text: str) -> str:
    """Return the heading of a group of options, filled to the width of a screen."""
    return fill(text, _HELP_WIDTH, subsequent_indent="  ")


def commands_by_task() -> dict[str, list[str]]:
    """Return the names of the commands by task, as the help screen of the program lists them."""
    tasks: dict[str, list[str]] = {}
    for name, command in REGISTRY.items():
        tasks.setdefault(command.TASK, []).append(name)
    return tasks


def _help_line(name: str, text: str, width: int) -> str:
    return f"  {name:{width}}  {text}\n"


class CommandParser(Parser):
    """The parser of a command, or of one of its actions; arguments are added when it is the one that runs."""

    command: ModuleType | None = None  # None: an action, whose command adds its arguments
    complete = False
    hidden_groups: Sequence[argparse._ArgumentGroup] = ()  # groups that --help does not show

    def format_help(self) -> str:
        hidden = {id(action) for group in self.hidden_groups for action in group._group_actions}
        formatter = self._get_formatter()
        shown = [action for action in self._actions if id(action) not in hidden]
        formatter.add_usage(self.usage, shown, self._mutually_exclusive_groups)
        formatter.add_text(_refill(self.description or ""))
        for group in self._action_groups:
            if group in self.hidden_groups:
                continue
            formatter.start_section(fill_heading(group.title or ""))
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def add_all_arguments(self) -> None:
        """Adds the arguments, once."""
        if not self.complete:
            self.complete = True
            _add_plugin_argument(self)
            if self.command is not None:
                self.command.add_arguments(self)
            _add_input_budget(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.add_all_arguments()
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._about_unknown(unknown[0]))
        return namespace, unknown

    def _about_unknown(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"{shortened(argument)}: one argument too many"
        option = argument.partition("=")[0]
        return f"option {shortened_name(option)}: unknown{hint(option, self._option_string_actions)}"


def make_parser(complete: bool = False) -> argparse.ArgumentParser:
    """The parser with every command.

    Parameters
    ----------
    complete : whether every command has its arguments at once, as the completion script wants; otherwise only the
        command that runs gets them
    """
    parser = ProgramParser(prog="buddysim", description=(buddysim.__doc__ or "").partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"buddysim {buddysim.__version__}")
    _add_plugin_argument(parser)
    _add_completion(parser)
    subparsers = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    for _, command in REGISTRY.items():
        subparser = add_command(subparsers, command)
        subparser.set_defaults(run=command.run)
        if complete:
            subparser.add_all_arguments()
    if complete:
        from buddysim.cli.completion import give_choices

        give_choices(parser)
    return parser


def add_command(subparsers: argparse._SubParsersAction[CommandParser], command: ModuleType) -> CommandParser:
    """Adds the parser of a command, or of a sub-command that is a module with the same names."""
    subparser = subparsers.add_parser(
        command.NAME,
        help=command.HELP.partition("\n")[0],
        description=command.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    subparser.command = command
    return subparser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    gc.set_threshold(_COLLECT_EVERY)
    _open_standard_streams()
    with signals.restored():
        return _run_inside(lambda: _run(argv))


def _run_inside(run: Callable[[], int]) -> int:
    """The exit code of a command, however it ends."""

    def watched() -> int:
        with boundary.watched() as errors:
            code = boundary.inside(run, _ended)
        return boundary.EXIT_UNEXPECTED if errors and not code else code

    try:
        return signals.run_to_end(watched)
    finally:
        remove_parts()


def _run(argv: Sequence[str] | None) -> int:
    arguments = sys.argv[1:] if argv is None else list(argv)
    inherited, named, shell = _scan(arguments)
    script = stored_script(shell, [*inherited, *named]) if shell else None
    if script is not None:
        print(script, flush=True)
        raise Finished(0)
    for file in named:
        plugins.load_plugin(file)
    args = make_parser(complete=any(text.startswith((COMPLETION, INSTALL)) for text in arguments)).parse_args(arguments)
    if args.command != "capture":  # whose scripts may draw
        _quieten_matplotlib()
    with larger_budget(_input_budget(args)):
        code = returned(args.run(args), int, f"command {args.command}: run", args.run)
    sys.stdout.flush()
    return code


def _quieten_matplotlib() -> None:
    """Figures go to files, whatever backend is named, and a folder that can't be matplotlib's cache is no news."""
    import logging

    os.environ.pop("MPLBACKEND", None)
    logging.getLogger("matplotlib").setLevel(logging.ERROR)


def _ended(error: BaseException) -> int:
    """The exit code of a command that an error ended."""
    if isinstance(error, Finished):
        raise error
    if isinstance(error, BrokenPipeError):
        drop_unwritten(sys.stdout)
        return EXIT_BROKEN_PIPE
    if isinstance(error, OSError) and drop_unwritten(sys.stdout) and error.filename is None:
        error = OSError(error.errno, error.strerror or str(error), "standard output")
    return boundary.ending(error).tell()


def _open_standard_streams() -> None:
    """Where a standard stream is closed: gives it a descriptor, which no file must get, and says nothing but errors.

    What can't be encoded for the terminal is escaped.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, mode), number)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - can't be written to
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - at its end
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - goes nowhere
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _add_plugin_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugin",
        metavar="FILE",
        action="append",
        help="Python file that registers schemes, workloads and so on (docs/how-to/add-a-plugin.md); may be repeated",
    )


def _add_input_budget(parser: argparse.ArgumentParser) -> None:
    """Add the option to a command, and to its actions: what is given to one counts for both."""
    parser.add_argument(
        OPTION,
        metavar="SIZE",
        default=argparse.SUPPRESS,
        help="memory that reading a file may take, such as 4 GiB (default: 1 GiB)",
    )


def _input_budget(args: argparse.Namespace) -> int | None:
    text = getattr(args, "input_budget", None)
    if text is None:
        return None
    from buddysim.cli.sizes import size_bytes

    return size_bytes(OPTION, text)


def _scan(argv: Sequence[str]) -> tuple[list[str], list[str], str | None]:
    """Return what precedes the parser: help, arguments and a completion script know what plug-ins define.

    Those that the environment names run code that the command line doesn't show: the first line of every command does.

    Returns
    -------
    the plug-ins of the environment, those of the command line, and the shell where its script is all that is requested
    """
    scanner = Parser(prog="buddysim", add_help=False, allow_abbrev=False)
    _add_plugin_argument(scanner)
    scanner.add_argument(COMPLETION, dest="shells", nargs="?", action="append")
    inherited = [str(Path(name).resolve()) for name in os.environ.get(plugins.VARIABLE, "").split(os.pathsep) if name]
    if inherited:
        say(f"plug-ins of {plugins.VARIABLE}: {', '.join(inherited)}")
    known, others = scanner.parse_known_args(argv)
    shells: list[str | None] = known.shells if not others and known.shells else []
    return inherited, known.plugin or [], shells[0] if len(shells) == 1 else None


class _PrintCompletion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: Any = None) -> None:
        import shtab

        script = shtab.complete(parser, values)
        store_script(values, script)
        print(script)
        parser.exit()


class _InstallCompletion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: Any = None) -> None:
        import shtab

        from buddysim.base.output import write_text
        from buddysim.cli.completion import script_file

        path = script_file(values)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, shtab.complete(parser, values) + "\n")
        print(path)
        parser.exit()


def _add_completion(parser: argparse.ArgumentParser) -> None:
    import shtab

    from buddysim.cli.completion import FOLDERS

    parser.add_argument(
        COMPLETION,
        action=_PrintCompletion,
        choices=shtab.SUPPORTED_SHELLS,
        help="name of a shell whose completion script is printed",
    )
    parser.add_argument(
        INSTALL,
        action=_InstallCompletion,
        choices=[shell for shell in shtab.SUPPORTED_SHELLS if shell in FOLDERS],
        help="name of a shell whose completion script is written to where it looks for those of a user",
    )
