"""Jobs: a Python file with a function that takes frames by name and returns one.

    def near(ball, players):
        return sj.join_within(ball, players, on=("x", "y"), radius=2.0, time="ts", window=sj.Range("2 seconds"))

The parameters' names are the inputs' names. A parameter `spark` gets the session, `**frames` takes every input that is
left. A file with several functions means the one called `job`; names that begin with `_`, and functions that were
imported, do not count.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import streamjoin as sj
from streamjoin import CallError
from streamjoin.api import ship_by_value

SESSION: Final = "spark"
Job = Callable[..., Any]
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def load_job(path: Path, query: QueryOptions | None = None) -> Job:
    """The job that a file holds: a function of a Python file, or a CQL query."""
    if path.suffix == ".cql":
        return cql_job(path, query or QueryOptions())
    if query is not None and query != QueryOptions():
        raise CallError(
            f"--time and --lateness are for CQL queries, and {path} is none", hint="a job in Python says them itself"
        )
    functions = _own_functions(_run(path))
    if not functions:
        raise CallError(
            f"{path} has no function", hint="write one that takes the frames and returns one: def job(R, S): ..."
        )
    if len(functions) == 1:
        return next(iter(functions.values()))
    if "job" not in functions:
        raise CallError(
            f"{path} has {len(functions)} functions and none is called 'job': {', '.join(functions)}",
            hint="call one of them job, or let the names of the others begin with _",
        )
    return functions["job"]


@dataclass(frozen=True)
class QueryOptions:
    """What a CQL query does not say itself: the time columns of its streams, and how late their rows may be.

    Each as it was given: for all streams, and by name.
    """

    time: tuple[str | None, Mapping[str, str]] = (None, {})
    lateness: tuple[str | None, Mapping[str, str]] = (None, {})

    def times(self, frames: Mapping[str, Any]) -> str | dict[str, str]:
        """As `sj.cql` takes them. A column that is named for all streams need not be there in each."""
        for_all, named = self.time[0] or "ts", self.time[1]
        if not named:
            return for_all
        return {name: for_all for name, frame in frames.items() if for_all in frame.columns} | dict(named)

    def graces(self, frames: Mapping[str, Any]) -> sj.Grace | dict[str, sj.Grace] | None:
        """As `sj.cql` takes them."""
        for_all, named = self.lateness
        slack = None if for_all is None else sj.Grace(number_or_text(for_all))
        if not named:
            return slack
        own = {name: sj.Grace(number_or_text(text)) for name, text in named.items()}
        return own if slack is None else dict.fromkeys(frames, slack) | own


def cql_job(path: Path, options: QueryOptions) -> Job:
    """A CQL query as a job; its inputs are its streams."""
    if not path.is_file():
        raise CallError(f"there is no job file {path}", hint="a CQL query is a text file whose name ends in .cql")
    text = path.read_text()

    def query(spark: Any, **frames: Any) -> Any:
        return sj.cql(spark, text, time=options.times(frames), lateness=options.graces(frames), **frames)

    return query


def number_or_text(written: str) -> int | str:
    """A length as it was typed: a plain number where times are numbers.

    >>> number_or_text("10"), number_or_text("10 s")
    (10, '10 s')
    """
    return int(written) if written.strip().lstrip("-").isdigit() else written


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        raise CallError(f"there is no job file {path}", hint="a job is a Python file with a function")
    name = f"streamjoin_job_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CallError(f"{path} is not a Python file", hint="its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    known, folder = set(sys.modules), path.resolve().parent
    sys.modules[name] = module  # dataclasses look for their module there
    sys.path.insert(0, str(folder))  # a job may import its neighbours, as a script may
    # Compiled anew each time, as a script is: compiled code that lies beside it may be of a moment ago.
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    # Workers know neither the module's made-up name nor its folder: what a UDF uses of them travels with it.
    for own in (module, *(sys.modules[new] for new in set(sys.modules) - known if _lies_in(folder, sys.modules[new]))):
        ship_by_value(own)
    return module


def _lies_in(folder: Path, module: ModuleType) -> bool:
    """Whether a module is a file of this folder, or a package directly in it."""
    file = Path(getattr(module, "__file__", None) or "/")
    return folder == (file.parent.parent if file.name == "__init__.py" else file.parent)


def _own_functions(module: ModuleType) -> dict[str, Job]:
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def check_names(job: Job, given: Iterable[str]) -> None:
    """Refuse inputs that the job does not take, and a job that takes inputs which were not given."""
    names = list(given)
    parameters = inspect.signature(job).parameters.values()
    signature = f"{job.__name__}{inspect.signature(job)}"
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    named = [parameter for parameter in parameters if parameter.kind in _BY_NAME]
    if any(parameter.kind is parameter.POSITIONAL_ONLY for parameter in parameters):
        raise CallError(f"inputs are handed over by name, and {signature} wants some by position", hint="remove the /")
    missing = [
        parameter.name
        for parameter in named
        if parameter.default is parameter.empty and parameter.name not in (*names, SESSION)
    ]
    if missing:
        raise CallError(
            f"{signature} wants the input {missing[0]!r}, which was not given",
            hint=f"add {missing[0]}=PATH" + (f"; given were {', '.join(names)}" if names else ""),
        )
    unwanted = [name for name in names if name not in {parameter.name for parameter in named}]
    if unwanted and not takes_any:
        raise CallError(
            f"the input {unwanted[0]!r} was given, and {signature} has no parameter of that name",
            hint="name inputs like the function's parameters",
        )


def run_job(job: Job, spark: Any, frames: Mapping[str, Any]) -> Any:
    """What the job makes of the frames: one frame."""
    wants_session = SESSION in inspect.signature(job).parameters
    result = job(**({SESSION: spark} if wants_session else {}), **frames)
    if not hasattr(result, "mapInArrow"):
        raise CallError(
            f"{job.__name__} must return a DataFrame, got {type(result).__name__}",
            hint="return the joined frame, without collecting or showing it",
        )
    return result
