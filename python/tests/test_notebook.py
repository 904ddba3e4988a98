"""The notebooks run."""

import os

import pytest


def texts(notebook):
    """The text of the last output of each cell that has one."""
    cells = [c for c in notebook.cells if c.cell_type == "code"]
    found = {c.id: o["data"]["text/plain"] for c in cells for o in c.outputs if "text/plain" in o.get("data", {})}
    return {cell: text for cell, text in found.items() if " at 0x" not in text}


def executed(name):
    """The notebook, executed. What the file shows is what its cells print."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    file = os.path.join(os.environ["SLOWSTART_ROOT"], "docs/guide", name)
    notebook = nbformat.read(file, as_version=4)
    shown = texts(notebook)
    nbclient.NotebookClient(notebook, timeout=300).execute()
    printed = texts(notebook)
    assert len(shown) >= 5 and {cell: printed.get(cell) for cell in shown} == shown
    outputs = [o.get("data", {}) for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    assert len([o for o in outputs if "image/png" in o]) == 2, "figures"
    return outputs


def test_the_notebook_from_a_question_to_a_figure():
    pages = [o["text/html"] for o in executed("python.ipynb") if "text/html" in o]
    assert any("<iframe srcdoc=" in page for page in pages), "the page of the comparison"
    assert any('<td class="h' in page and "Which startup is first" in page for page in pages), "the heat map"


def test_the_notebook_from_captures_to_advice():
    said = [o.get("text/plain", "") for o in executed("captures.ipynb")]
    assert said[-1].startswith("'Stay with hystart: over "), said[-1]
