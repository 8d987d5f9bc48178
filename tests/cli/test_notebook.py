"""Progress in a notebook: IPython is a stand-in that keeps what is shown."""

import re
import sys
import threading
from types import ModuleType, SimpleNamespace

import pytest

import graphprep
from graphprep.model.errors import StorageError
from graphprep.model.shown import compilation
from graphprep.notebook import NotebookReporter, notebook_reporter


class Display:
    """What a cell shows, drawing after drawing."""

    def __init__(self):
        self.shown = []
        self.drawn = threading.Condition()

    def display(self, value, display_id):
        assert display_id is True
        self.update(value)
        return self

    def update(self, value):
        assert repr(value) == ""
        with self.drawn:
            self.shown.append(value._repr_html_())
            self.drawn.notify_all()

    def wait_for(self, text):
        with self.drawn:
            assert self.drawn.wait_for(lambda: any(text in one for one in self.shown), timeout=30), self.shown[-3:]


@pytest.fixture
def notebook(monkeypatch):
    found = Display()
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    display.display = found.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return found


def test_only_notebooks_have_a_bar(notebook, monkeypatch):
    assert notebook_reporter() is not None
    sys.modules["IPython"].get_ipython = SimpleNamespace
    assert notebook_reporter() is None
    sys.modules["IPython"].get_ipython = lambda: None
    assert notebook_reporter() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert notebook_reporter() is None


def test_a_stage_is_drawn_while_it_works_and_messages_stay(notebook):
    with NotebookReporter(interval_s=0.01) as reporter:
        reporter.message("a <b> file, see --on-error skip")
        reporter.stage("decode", total_bytes=200)
        reporter.advance(records=5, num_bytes=50)
        notebook.wait_for('<progress value="0.250"></progress> decode: 5 records, 50 B of 200 B (25%), ')
        reporter.stage("index")
        notebook.wait_for("<div><progress></progress> index</div>")
    assert notebook.shown[0] == ""
    assert notebook.shown[-1] == "<div>a &lt;b&gt; file, see on_error=&quot;skip&quot;</div>"


def test_kernels_are_told_while_they_compile(notebook):
    with NotebookReporter(interval_s=0.01) as reporter:
        reporter.stage("plan")
        with compilation.compiling():
            notebook.wait_for("plan; compiling kernels ")
        reporter.stage("decode")
        notebook.wait_for("<progress></progress> decode</div>")
        with compilation.compiling():
            notebook.wait_for("decode; compiling kernels ")
    assert re.fullmatch(r"<div>compiled 2 kernels in [\d.]+ s: that is done once</div>", notebook.shown[-1])
    with compilation.compiling():  # nobody listens any more
        pass


def test_of_many_messages_the_last_stay(notebook):
    with NotebookReporter() as reporter:
        for number in range(25):
            reporter.message(f"line {number}")
    lines = re.findall(r"<div>(.*?)</div>", notebook.shown[-1])
    assert lines == ["… 5 lines before", *(f"line {number}" for number in range(5, 25))]


def test_every_function_shows_its_progress_in_a_notebook(notebook, sample_data, tmp_path):
    store = tmp_path / "karate"
    calls = [
        lambda: graphprep.convert(sample_data / "karate/karate.csv", store),
        lambda: graphprep.info(sample_data / "karate/karate.csv"),
        lambda: graphprep.validate(store),
        lambda: graphprep.partition(store, tmp_path / "parts", by="hash", partitions=2),
        lambda: graphprep.reorder(store, tmp_path / "hot"),
        lambda: graphprep.split(store, tmp_path / "parted", (0.5, 0.5), by="random"),
        lambda: graphprep.export(store, tmp_path / "edges", "edges"),
        lambda: graphprep.generate("grid", tmp_path / "grid.txt", rows=2, cols=2),
    ]
    for call in calls:
        before = len(notebook.shown)
        call()
        assert len(notebook.shown) >= before + 2
        assert "<progress" not in notebook.shown[-1]
        assert not [thread for thread in threading.enumerate() if thread.name == "graphprep-progress"]
    assert "format: edges (sniffed; format=&quot;edges&quot; repeats this choice)" in "".join(notebook.shown)


def test_a_failure_takes_the_bar_away(notebook, tmp_path):
    with pytest.raises(StorageError):
        graphprep.convert(tmp_path / "none.csv", tmp_path / "store")
    assert notebook.shown[-1] == ""
    assert not [thread for thread in threading.enumerate() if thread.name == "graphprep-progress"]


def test_a_reporter_that_is_given_hears_alone(notebook, sample_data, tmp_path):
    stages = []
    reporter = SimpleNamespace(stage=lambda name, **_: stages.append(name), advance=lambda **_: None, message=lambda _: None)
    graphprep.convert(sample_data / "karate/karate.csv", tmp_path / "karate", reporter=reporter)
    assert stages[0] == "plan"
    assert notebook.shown == []
