"""Imports point downwards only, and in no circle."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# lowest first; a module belongs to the layer with its longest matching name
LAYERS = [
    ["agents"],
    ["memory.analyzer", "memory.words", "memory.fts", "memory.fields", "memory.databases",
     "memory.files", "memory.latency", "memory.llm", "memory.recall_log", "memory.errors",
     "memory.numbers", "memory.prepared", "memory.understanding"],
    ["memory.querysets", "memory.models", "memory.filters", "memory.drafts", "memory.ids",
     "memory.indexing", "memory.ordering", "memory.endpoints"],
    ["memory.retrieval"],
    ["memory.services"],
    ["memory.tools"],
    ["memory.api", "memory.serializers", "memory.views", "memory.forms", "memory.diffs",
     "memory.charts", "memory.urls", "memory.routes", "memory.templatetags",
     "memory.mcp", "memory.tasks", "memory.management", "memory.admin", "memory.apps"],
    ["config"],
]  # fmt: skip
NO_LAYER = {"memory"}


def modules():
    for package in ("agents", "memory", "config"):
        for path in (ROOT / package).rglob("*.py"):
            if "migrations" not in path.parts:
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def layer_of(module):
    found = [
        (len(prefix), number)
        for number, prefixes in enumerate(LAYERS)
        for prefix in prefixes
        if module == prefix or module.startswith(f"{prefix}.")
    ]
    return max(found)[1] if found else None


def imports_of(path, known):
    """Yield (module of ours, whether it is imported when the module is)."""
    tree = ast.parse(path.read_text())
    inner = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            target = name if name in known else name.rpartition(".")[0]
            if target in known:
                yield target, id(node) not in inner


def test_every_module_has_a_layer():
    assert [name for name, _ in modules() if layer_of(name) is None and name not in NO_LAYER] == []


def test_no_import_points_upwards():
    known = dict(modules())

    upwards = [
        f"{name} → {target}"
        for name, path in known.items()
        for target, _ in imports_of(path, known)
        if name not in NO_LAYER and target not in NO_LAYER and layer_of(target) > layer_of(name)
    ]

    assert upwards == []


def test_no_imports_go_in_a_circle():
    known = dict(modules())
    graph = {
        name: {target for target, at_import in imports_of(path, known) if at_import} - {name}
        for name, path in known.items()
    }

    while leaves := {name for name, targets in graph.items() if not targets}:
        graph = {name: targets - leaves for name, targets in graph.items() if name not in leaves}

    assert graph == {}
