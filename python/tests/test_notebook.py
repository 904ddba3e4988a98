"""The notebook runs."""

import os

import pytest


def texts(notebook):
    """The text of the last output of each cell that has one."""
    cells = [c for c in notebook.cells if c.cell_type == "code"]
    found = {c.id: o["data"]["text/plain"] for c in cells for o in c.outputs if "text/plain" in o.get("data", {})}
    return {cell: text for cell, text in found.items() if " at 0x" not in text}


def test_the_notebook_runs():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    file = os.path.join(os.environ["SLOWSTART_ROOT"], "docs/guide/python.ipynb")
    notebook = nbformat.read(file, as_version=4)
    shown = texts(notebook)
    nbclient.NotebookClient(notebook, timeout=300).execute()
    printed = texts(notebook)
    # What the file shows is what its cells print.
    assert len(shown) >= 5 and {cell: printed.get(cell) for cell in shown} == shown
    figures = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs if "image/png" in o.get("data", {})]
    assert len(figures) == 2
    pages = [o["data"]["text/html"] for c in notebook.cells if c.cell_type == "code" for o in c.outputs if "text/html" in o.get("data", {})]
    assert any("<iframe srcdoc=" in page for page in pages), "the page of the comparison"
    assert any('<td class="h' in page and "Which startup is first" in page for page in pages), "the heat map"
