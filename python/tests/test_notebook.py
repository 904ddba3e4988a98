"""The notebook runs."""

import os

import pytest


def test_the_notebook_runs():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    file = os.path.join(os.environ["SLOWSTART_ROOT"], "docs/guide/python.ipynb")
    notebook = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300).execute()
    figures = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs if "image/png" in o.get("data", {})]
    assert len(figures) == 2
    pages = [o["data"]["text/html"] for c in notebook.cells if c.cell_type == "code" for o in c.outputs if "text/html" in o.get("data", {})]
    assert any("<iframe srcdoc=" in page for page in pages), "the page of the comparison"
    assert any('<td class="h' in page and "Which startup is first" in page for page in pages), "the heat map"
