"""The front door: `rearrange train | eval | record | view | reproduce | bench | report | export | scenes | serve |
tools | list | doctor`.

    rearrange train skill=pick seed=1          one run
    rearrange train -m skill=pick seed=0,1,2   a sweep: one run, and one directory, per combination

Answers to `--help` and to mistakes come without importing torch or a simulator; the work is in
`rearrange.command_line.commands`, imported once everything that was typed has been checked. Exit status: 0 done, 2 a
mistake of the user, 130 stopped, 75 stopped by a scheduler's warning, 1 anything else. """

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from rearrange import __version__
from rearrange.command_line import launcher_words
from rearrange.command_line.composition.command_names import BARE_WORDS, COMMANDS, FLAGS, RUNLESS, SINGLE
from rearrange.command_line.runs.exit_with_parent import follow_parent
from rearrange.home import own_packages
from rearrange.home.errors import UserError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MOST_SAID = 4000  # characters of a mistake: what is wrong in a file may be of any length
VIEWED = "hab=tidy_house"  # by `rearrange view` that names no task
INTRODUCTION = """\
rearrange: teach a home robot to navigate, pick, place, open and close, and chain its skills to tidy a home.

  rearrange train experiment=quickstart     learn to pick, in about five minutes
  rearrange eval skill=pick video=3         evaluate what was learned, and watch three episodes
  rearrange eval hab=tidy_house             a whole scenario: planned, and carried out by the trained skills that ship
  rearrange train skill=pick                the full training run; skill=all trains every skill, one after another
  rearrange reproduce                       Figure 6 of the VER paper, from nothing, overnight; preset=smoke: minutes
  rearrange report | view                   the newest runs as a page for the browser | a home in it: watch or drive
  rearrange record | export | serve | tools demonstrations | a policy as a file, or over a websocket | an agent's tools
  rearrange scenes export out=homes         our homes, objects, robot and episodes as a data set for Habitat
  rearrange list | bench sim | doctor       skills, simulators, checkpoints | speed of this machine | what is installed

'rearrange train --help' lists every setting; '--cfg job' prints their values; '-m' runs sweeps;
'rearrange --install-completion' sets up the Tab key; 'rearrange --version' prints the version."""


def main(argv: list[str] | None = None) -> int:
    """Run one command line; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):  # names of files that are no UTF-8 are printed as they are
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="surrogateescape")
    if argv is None:
        own_packages.come_first()
    if own_packages.in_the_way("trainer"):
        follow_parent()
        return _status(words)  # which says so
    if argv is None:  # a process of its own
        from rearrange.command_line.runs import starting

        starting.listen(_name(words), words)
    follow_parent()
    from trainer.logs import screen

    with screen.guarded():
        try:
            status = _status(words)
            sys.stdout.flush()
            if argv is None:
                sys.stderr.flush()
                if status == 2:
                    # nothing has begun: no thread, handler or library that is loaded may hold up the end
                    os._exit(status)
                starting.end_as(status)
            return status
        except screen.Lost as error:
            if error.errno in (errno.EPIPE, errno.EIO):  # `rearrange train --help | head`; a closed terminal
                return 0
            print(f"rearrange: standard output cannot be written: {error.strerror}.", file=sys.stderr)
            return 1
        finally:
            sys.stderr.flush()


def _status(words: list[str]) -> int:
    """Do what the words say; the exit status, once a mistake or a stop has been told."""
    name = _name(words)
    try:
        return _dispatch(words)
    except UserError as error:
        if _speaks():
            print(f"{name}: {error}"[:MOST_SAID], file=sys.stderr)
        else:
            time.sleep(3.0)  # the launcher ends all ranks when one ends: let the first speak before
        return 2
    except ImportError as error:
        if not _is_torn_mujoco(error):
            raise
        if _speaks():
            print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        from trainer.faults import signals

        signals.came.clear()
        return _stopped(name, signals.name_of(stop))


def _is_torn_mujoco(error: ImportError) -> bool:
    """Whether MuJoCo 4 was installed over 3: pip removes the old package last, with files of the new one. MuJoCo's own
    message says what is to be done."""
    return "mujoco-core" in str(error)


def _name(words: list[str]) -> str:
    """What messages begin with."""
    return f"rearrange {words[0]}" if words and words[0] in COMMANDS else "rearrange"


def _stopped(name: str, by: str | None) -> int:
    """Say that a command was stopped; its exit status."""
    from trainer.faults import signals

    if _speaks():
        print(f"{name}: stopped.", file=sys.stderr)
    else:
        time.sleep(3.0)  # let the first do what is left
    return signals.exit_status(by)


def _speaks() -> bool:
    """Of several ranks, the first speaks for all; one that does not know its place speaks, too."""
    try:
        from trainer.ranks.launch import this_rank

        return this_rank().rank == 0
    except (ValueError, ImportError):  # another trainer may be in the way
        return True


def _check_place() -> None:
    """UserError if the launcher's environment variables make no sense."""
    from trainer.ranks.launch import this_rank

    try:
        this_rank()
    except ValueError as error:
        raise UserError(str(error)) from error


def _refuse_ranks(what: str) -> None:
    """UserError for what starts commands of its own, where a launcher has started several of these processes."""
    from trainer.ranks.launch import this_rank

    _check_place()
    if this_rank().size > 1:
        raise UserError(f"{what} starts one command after another, each a process of its own, and is itself for one "
                        "process: leave srun or torchrun out.")


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help") and len(words) == 1:
        print(INTRODUCTION)
        return 0
    if words[0] != "doctor":  # which tells all of it
        own_packages.claim()
    if words[0] == "help":
        words = [words[1], "--help", *words[2:]]
    first, rest = words[0], words[1:]
    if first == "--version":
        print(f"rearrange {__version__}")
        return 0
    if first in ("--install-completion", "--complete"):
        from rearrange.command_line import completion

        return completion.install(rest) if first == "--install-completion" else completion.complete(rest)
    if first not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(
            first, [*COMMANDS, "--version", "--help", "--install-completion"], 1, cutoff=0.5
        )
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise UserError(f"unknown command '{first}'.{hint} Commands: {', '.join(COMMANDS)}.")
    if first == "doctor":  # answers even where what the other commands need is missing or broken
        from rearrange.command_line import doctor

        return doctor.main(rest)
    return _command(first, rest)


def _command(command: str, words: list[str]) -> int:
    """One of COMMANDS with its words."""
    from trainer.logs import screen

    overrides, flags = _split_flags(command, words)
    if command == "report":
        overrides = _named_runs(overrides)
    if command == "view" and "--help" not in flags and not any(word.startswith(("skill=", "nav=", "hab="))
                                                               for word in overrides):
        overrides = [VIEWED, *overrides]
    every = next((word for word in overrides if word in ("skill=all", "hab=all")), None)
    several = every or ("-m" if "--multirun" in flags else command if command == "reproduce" else None)
    if several and not flags & {"--help", "--cfg"}:
        _refuse_ranks(several)
    typed = overrides
    overrides = launcher_words.of_settings(command, typed, several,
                                           sweep="--multirun" in flags or bool(every) and command == "train")
    if every and flags & {"--help", "--cfg"}:  # what all of them have in common
        overrides = [word for word in overrides if word != every]
    elif every == "skill=all" and command == "train":
        from rearrange.command_line import sweep

        typed, flags = sweep.all_skills(typed), flags | {"--multirun"}
    elif every:
        from rearrange.command_line import all_skills as every_skill

        screen.is_expendable()
        _end_like_ctrl_c()
        return every_skill.run(command, typed, group=every.partition("=")[0])
    if "--multirun" in flags and command in SINGLE:
        raise UserError(f"{command} has no sweeps: leave -m out, and give every setting one value.")
    if "--multirun" in flags and not flags & {"--help", "--cfg"}:
        from rearrange.command_line import sweep

        screen.is_expendable()
        _end_like_ctrl_c()
        return sweep.run(command, typed)

    from rearrange.command_line.composition import parse_overrides as front
    from rearrange.command_line.composition.options import options_of

    if "--multirun" in flags:
        from rearrange.command_line import sweep

        jobs = sweep.shown(command, [word for word in typed if word != every])
    else:
        jobs = [("", front.compose(command, overrides))]
    settings = jobs[0][1]
    if "--help" in flags:
        from rearrange.command_line.key_help import help_text

        print(help_text(settings, COMMANDS[command])
              + (launcher_words.HELP if command not in SINGLE or command == "reproduce" else ""))
        return 0
    if "--cfg" in flags:
        for number, (line, settings) in enumerate(jobs):
            print("---\n" * (number > 0) + f"# {line}\n" * bool(line), end="")
            _print_config(settings)
        return 0
    if command == "list":
        from rearrange.command_line import listing

        print(listing.text(Path(settings.value("output"))))
        return 0
    if command in RUNLESS:
        from trainer.faults import signals

        if command == "view" or command == "record" and settings.value("replay") is None:
            front.require(settings)
        from rearrange.command_line import commands

        _end_like_ctrl_c()
        if command in ("record", "reproduce"):
            screen.is_expendable()
        hydras = [launcher_words.split(typed)[1]] if command == "reproduce" else []
        with signals.not_lost():
            return getattr(commands, command)(options_of(settings), *hydras) or 0
    return _work(command, overrides, settings)


def _work(command: str, overrides: list[str], settings) -> int:
    """Train, evaluate or measure in a run directory."""
    from rearrange.command_line.composition import auto_resume, plan_run
    from rearrange.command_line.composition.options import options_of
    from rearrange.command_line.composition.parse_overrides import require
    from rearrange.command_line.runs import requeue, starting
    from trainer.faults import signals
    from trainer.logs import screen

    _check_place()
    if settings.value("requeue"):
        requeue.check()
    if command == "train":
        run = auto_resume.plan_training(overrides, settings, first=_speaks())
        if run is None:  # finished
            return 0
    else:
        require(settings)
        run = plan_run.plan(settings) if _speaks() else plan_run.silent(settings)
    settings = run.settings
    starting.want_requeue(bool(settings.value("requeue")))  # which may stand in the run that goes on
    screen.is_expendable(run.log)

    from rearrange.command_line import commands  # torch and the simulator, from here on

    _end_like_ctrl_c()
    options = options_of(settings)
    work = getattr(commands, "evaluate" if command == "eval" else command)
    try:
        with run.keeps_warnings(), signals.not_lost():
            result = work(options, run)
    except KeyboardInterrupt as stop:
        run.finish("stopped")
        requeue.after(signals.name_of(stop), run)
        raise
    except OSError as error:
        if error.errno not in DISK_FULL:
            if run.created:
                run.log(traceback.format_exc())
            run.finish("failed")
            raise
        how = "continue with resume=true" if command == "train" else "run it again under another name="
        sentence = f"{error.filename or run.path} cannot be written: {error.strerror}. Make room, and {how}."
        run.finish("failed")
        print(f"rearrange {command}: {sentence}", file=sys.stderr)
        return 1
    except BaseException:
        if run.created:
            run.log(traceback.format_exc())
        run.finish("failed")
        raise
    if result is None:  # a training that a signal ended in good order
        run.finish("stopped")
        requeue.after(run.stopped_by, run)
        return _stopped(f"rearrange {command}", run.stopped_by)
    run.finish("finished", result)
    return 0


def _end_like_ctrl_c() -> None:
    """Let SIGTERM, and what a scheduler sends some time before, end a command as Ctrl-C does: tidily. Training
    replaces this by a handler that saves first.

    SIGINT too, since a shell starts its background jobs with that signal ignored; and SIGHUP, which comes when the
    terminal is closed, unless nohup has it ignored. """
    from trainer.faults import signals

    if threading.current_thread() is threading.main_thread():
        signals.came.clear()
        for signum in signals.heard():
            signal.signal(signum, signals.interrupt)


def _split_flags(command: str, words: list[str]) -> tuple[list[str], set[str]]:
    """The `key=value` words, and the flags among FLAGS; `bench sim` means `bench=sim`."""
    overrides, flags, rest = [], set(), list(words)
    short = {"-h": "--help", "-m": "--multirun", "-c": "--cfg"}
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            key = BARE_WORDS.get(command) if "=" not in word and not overrides else None
            overrides.append(f"{key}={word}" if key else word)
            continue
        flag = short.get(word, word)
        if flag not in FLAGS:
            import difflib

            from rearrange.command_line.composition.parse_overrides import as_setting

            near = difflib.get_close_matches(flag, FLAGS, 1, cutoff=0.7)
            option, _, value = word.partition("=")
            hint = f" Did you mean {near[0]}?" if near else as_setting(
                command, option, value or (rest[0] if rest and not rest[0].startswith("-") else None))
            raise UserError(f"unknown option '{word if near else option}'.{hint} Options: --help, --cfg job, -m."
                            + (" Settings are written key=value." if not hint or near else ""))
        if flag == "--cfg" and (not rest or rest.pop(0) != "job"):
            raise UserError("--cfg prints the settings of a job: write --cfg job.")
        flags.add(flag)
    return overrides, flags


def _named_runs(words: list[str]) -> list[str]:
    """`report a b` means `report runs=[a,b]`, and so does `report runs=a,b`. A word is a path if it is not
    `key=value`."""
    paths, settings = [], []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or "/" in key or os.path.exists(word):
            paths.append(word)
        elif key == "runs" and value and value != "null" and not value.startswith("["):
            paths += [value] if os.path.exists(value) else value.split(",")
        else:
            settings.append(word)
    if not paths:
        return settings
    if any(word.startswith("runs=") for word in settings):
        raise UserError("runs= and directories without it are both given; write all of them without runs=.")
    quoted = ("'" + os.path.expanduser(path).replace("\\", "\\\\").replace("'", "\\'") + "'" for path in paths)
    return [*settings, f"runs=[{','.join(quoted)}]"]


def _print_config(settings) -> None:
    """`--cfg job`: the choices as a comment, and every setting as YAML."""
    from rearrange.home.settings.yaml_files import as_yaml

    print("# " + " ".join(f"{group}={choice}" for group, choice in settings.choices.items()))
    print(as_yaml(settings.config), end="")


if __name__ == "__main__":
    sys.exit(main())
