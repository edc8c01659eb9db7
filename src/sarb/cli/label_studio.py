"""``sarb data push label-studio`` and ``sarb data pull label-studio``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sarb.cli.common import Options, echo, end_with, examples, file_to_write, pairs
from sarb.cli.data import Source
from sarb.label_studio.host import DEFAULT_URL, TOKEN, URL, Host

Url = Annotated[str, typer.Option(help="Address of Label Studio.", envvar=URL, metavar="URL")]
Token = Annotated[
    str,
    typer.Option(
        help="Personal access token, or legacy token; better in the environment than here.",
        envvar=TOKEN,
        show_default=False,
        metavar="TOKEN",
    ),
]
push_app = typer.Typer(help="Send labels and images to a labelling tool.", no_args_is_help=True)
pull_app = typer.Typer(help="Fetch answers from a labelling tool.", no_args_is_help=True)


@push_app.command(
    "label-studio",
    epilog=examples(
        "sarb data push label-studio labels.csv -o encoding=binary --model runs/mine --title Photos",
        "sarb data push label-studio labels.csv --images local --document-root /data --model runs/mine",
    ),
)
def push(
    source: Source,
    option: Options = None,
    url: Url = DEFAULT_URL,
    token: Token = "",
    project: Annotated[
        int | None, typer.Option(help="Add to this project.", show_default="a new one", metavar="NUMBER")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the new project.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="Run or model folder that makes the predictions.", metavar="RUN")
    ] = None,
    split: Annotated[str, typer.Option(help="Images to push: train, valid, test or all.")] = "train",
    limit: Annotated[
        int | None, typer.Option(help="Most images; the least certain ones first, with --model.", min=1)
    ] = None,
    images: Annotated[
        str, typer.Option(help="upload: copy them to Label Studio. local: it reads them from its disk.")
    ] = "upload",
    document_root: Annotated[
        Path | None,
        typer.Option(help="For --images local: Label Studio's LOCAL_FILES_DOCUMENT_ROOT.", metavar="DIR"),
    ] = None,
    prefill: Annotated[
        bool,
        typer.Option("--prefill", help="Fill in the predictions; what is not changed counts as answered."),
    ] = False,
    min_confidence: Annotated[
        float, typer.Option(help="Leave less probable answers out of the predictions.", min=0, max=1)
    ] = 0.0,
) -> None:
    """Make a Label Studio project with a yes/no question per category, and push images to it."""
    from sarb.workflows.label_studio_push import push_session

    pushed = push_session(
        source,
        Host(url, token),
        options=pairs(option),
        project=project,
        title=title,
        run=model,
        split=split,
        limit=limit,
        images=images,
        document_root=document_root,
        prefill=prefill,
        min_confidence=min_confidence,
        progress=True,
    )
    echo(str(pushed), err=True)
    words = " ".join(f"-o {text}" for text in option or [])
    echo(
        f"fetch the answers with: sarb data pull label-studio {source} {words} --project {pushed.project} "
        "--out answered.csv",
        err=True,
    )
    echo(pushed.project)
    end_with(pushed.skipped)


@pull_app.command(
    "label-studio",
    epilog=examples(
        "sarb data pull label-studio labels.csv -o encoding=binary --project 1 --out answered.csv"
    ),
)
def pull(
    source: Source,
    project: Annotated[int, typer.Option(help="Number of the project.", metavar="NUMBER")],
    out: Annotated[
        Path,
        typer.Option(
            help="File to write, in the form of the source.", metavar="FILE", callback=file_to_write
        ),
    ],
    option: Options = None,
    url: Url = DEFAULT_URL,
    token: Token = "",
    annotators: Annotated[
        str,
        typer.Option(help="Where people said yes and no: all leaves it unknown, any makes it present."),
    ] = "all",
    replace: Annotated[
        bool, typer.Option("--replace", help="Let answers replace the known labels they contradict.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write a copy of a table with the answers given in Label Studio; untouched labels stay unknown."""
    from sarb.workflows.label_studio_pull import conflicts_file, pull_session

    pulled = pull_session(
        source,
        Host(url, token),
        project,
        out,
        options=pairs(option),
        annotators=annotators,
        replace_known=replace,
        overwrite=overwrite,
    )
    echo(str(pulled), err=True)
    if pulled.conflicts:
        kept = "replaced" if replace else "kept; --replace takes the answers instead"
        echo(f"the contradicted labels were {kept}; see {conflicts_file(out)}", err=True)
    if pulled.test:
        echo(f"{pulled.test:,} answered images are test images: their labels change what is tested", err=True)
    echo(f"train on it with: {pulled.reading.command('sarb', 'train', '--data')}", err=True)
