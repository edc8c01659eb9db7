"""The pages on explain, export and the model folder are executed."""

import pytest
from PIL import Image

from sarb.data.demo.scene import draw_scene
from tests.documentation.tools import ROOT, blocks, commands, hurry, run


@pytest.mark.parametrize("page", ["explain", "export", "model-folder"])
def test_page(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    hurry(monkeypatch)
    Image.Image.save(draw_scene(0, 3, 160)[0], "photo.jpg")
    names, count = {}, 0
    for block in blocks(ROOT / "docs" / f"{page}.md"):
        if block.mark is not None:
            continue
        count += 1
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, f"{page}.md", "exec"), names)
        for words, _ in commands(block) if block.language == "console" else ():
            assert run(words, monkeypatch) == 0, capsys.readouterr().err
    assert count >= 2
