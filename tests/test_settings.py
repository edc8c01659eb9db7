"""Settings: recipes, precedence, all errors at once."""

import math

import pytest

from sarb.errors import ConfigError, command_line
from sarb.settings import (
    Settings,
    checkpoint_pace,
    option_types,
    parse_assignment,
    read_recipe,
    recipe_names,
    resolve,
)

PAPER = ("coco2014", "vg200", "voc2007")


@pytest.fixture
def recipe(tmp_path):
    """Write a recipe file and return its path."""

    def write(text):
        (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
        return tmp_path / "mine.toml"

    return write


def problems(*arguments, **options):
    """Return what ``resolve`` complains about."""
    with pytest.raises(ConfigError) as error:
        resolve(*arguments, **options)
    return error.value.problems


# recipes


@pytest.mark.parametrize("name", recipe_names())
def test_every_built_in_recipe_resolves(name):
    settings = resolve(name)
    content = read_recipe(name)
    for key, value in content["train"].items():
        assert isinstance(value, dict) or getattr(settings, key) == value


def test_the_built_in_recipes():
    assert {"small", "gpu", *PAPER} <= set(recipe_names())


@pytest.mark.parametrize("name", PAPER)
def test_paper_recipes_carry_the_papers_numbers(name):
    settings = resolve(name)
    assert (settings.method, settings.network, settings.backbone) == ("sarb", "ssgrl", "resnet101")
    assert (settings.lr, settings.batch_size, settings.epochs, settings.image_size) == (1e-5, 16, 20, 448)
    assert (settings.optimizer, settings.weight_decay, settings.schedule) == ("adam", 5e-4, "step")
    assert settings.warmup == 0 and settings.clip == 0 and settings.augment is True and not settings.cache
    assert settings.graph_counts == "known" and settings.lr_scale == {}
    assert settings.backbone_options["train_stages"] == 1
    method, network = settings.method_options, settings.network_options
    assert (method["start"], method["refresh"], method["prototypes"], method["plrb_contrastive"]) == (
        5,
        5,
        10,
        0.05,
    )
    assert (method["alpha"], method["beta"], method["learnable"]) == (0.5, 0.5, True)
    assert (network["csrl"], network["dim"], network["hidden"], network["steps"]) == ("sd", 1024, 512, 3)


def test_the_defaults_are_the_papers():
    settings = Settings()
    assert (settings.method, settings.network, settings.lr, settings.batch_size) == (
        "sarb",
        "ssgrl",
        1e-5,
        16,
    )
    assert (settings.epochs, settings.image_size, settings.weight_decay) == (20, 448, 5e-4)
    assert (settings.optimizer, settings.schedule, settings.augment) == ("adam", "step", True)


@pytest.mark.parametrize("gpu", [True, False])
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "auto"),
        ({"method": None, "network": None, "backbone": "tiny", "epochs": 3}, "auto"),
        ({"method": "auto"}, "auto"),
        ({"network": "probe"}, "auto"),
        ({"method": "sarb"}, None),
        ({"network": "ssgrl"}, None),
        ({"method": "sarb", "network": "probe"}, None),
        ({"method": "partial_bce", "network": "pooled"}, None),
    ],
)
def test_without_a_recipe_the_method_and_the_machine_decide(monkeypatch, gpu, given, name):
    monkeypatch.setattr("sarb.settings._has_gpu", lambda: gpu)
    expected = name or ("gpu" if gpu else "small")
    assert read_recipe(None, given) == read_recipe(expected)
    assert resolve(**given) == resolve(expected, **given)


def test_the_default_is_auto_and_a_method_alone_is_the_papers_network():
    assert [getattr(resolve(), name) for name in ("method", "network")] == ["auto", "probe"]
    assert [getattr(resolve(method="sarb"), name) for name in ("method", "network")] == ["sarb", "ssgrl"]
    assert resolve(method="sarb") == resolve("small")


def test_what_auto_takes_from_small():
    """A part that is trained in steps later has the settings of the tuned recipe."""
    auto, small = read_recipe("auto"), read_recipe("small")
    own = {"method", "network", "image_size", "epochs", "min_steps"}
    plain = {key: value for key, value in small["train"].items() if not isinstance(value, dict)}
    assert {key: value for key, value in auto["train"].items() if key not in own} == {
        key: value for key, value in plain.items() if key not in own
    }
    assert auto["network"]["ssgrl"] == small["network"]["ssgrl"]
    assert all(auto[name] == small[name] for name in ("backbone", "lr", "method"))


def test_an_option_of_another_method_names_that_method():
    (found,) = problems(method_options={"alpha": 0.3})
    assert found == (
        "unknown option of method 'auto': 'alpha'. It is an option of method sarb or dsrb: add method='sarb'"
    )
    (found,) = problems(method="sarb", method_options={"claims": "strict"})
    assert "It is an option of method auto: add method='auto'" in found
    (found,) = problems(network_options={"csrl": "sam"})
    assert "It is an option of network ssgrl or kggr: add network='ssgrl'" in found
    (found,) = problems(method_options={"clams": "strict"})
    assert "Did you mean 'claims'? Available: bank, claims" in found


def test_an_unknown_recipe_gets_the_near_match():
    with pytest.raises(ConfigError, match=r"unknown recipe 'coco2041'\. Did you mean 'coco2014'\?"):
        read_recipe("coco2041")


def test_a_missing_recipe_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no such recipe file") as error:
        read_recipe(tmp_path / "none.toml")
    assert str(tmp_path / "none.toml") in str(error.value)


@pytest.mark.parametrize("content", [b"[train\nlr = 1", b"[train]\nlr = \xff\xfe"])
def test_a_broken_recipe_file_is_named(tmp_path, content):
    (tmp_path / "bad.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"bad\.toml: not valid TOML"):
        read_recipe(tmp_path / "bad.toml")


def test_unknown_sections_and_keys_outside_a_section(recipe):
    file = recipe('epochs = 3\nmethod = "sarb"\n[trian]\nlr = 1.0\n')
    with pytest.raises(ConfigError) as error:
        read_recipe(file)
    text = str(error.value)
    assert "'trian'. Did you mean 'train'?" in text and "'epochs'" in text
    assert "'method' must be a table [method]" in text


# precedence


def test_default_recipe_network_given(recipe):
    file = recipe("[train]\nepochs = 3\nlr = 0.1\nbatch_size = 4\n[train.pooled]\nlr = 0.2\nbatch_size = 5\n")
    plain, pooled = resolve(file, network="ssgrl"), resolve(file, network="pooled", method="partial_bce")
    given = resolve(file, network="pooled", method="partial_bce", batch_size=6)
    assert (plain.epochs, plain.lr, plain.batch_size, plain.image_size) == (3, 0.1, 4, Settings.image_size)
    assert (pooled.epochs, pooled.lr, pooled.batch_size) == (3, 0.2, 5)
    assert (given.epochs, given.lr, given.batch_size) == (3, 0.2, 6)


def test_the_network_may_be_chosen_by_the_recipe_itself(recipe):
    file = recipe('[train]\nnetwork = "pooled"\nmethod = "partial_bce"\nlr = 0.1\n[train.pooled]\nlr = 0.2\n')
    assert resolve(file).lr == 0.2


def test_none_means_not_said(recipe):
    file = recipe("[train]\nepochs = 3\naugment = false\n")
    assert resolve(file, epochs=None, augment=None, method_options=None).epochs == 3
    assert resolve(file, augment=True).augment is True


def test_sections_of_a_method_apply_to_that_method_only(recipe):
    file = recipe(
        "[train]\n[method.sarb]\nalpha = 0.3\nstart = 2\n[method.partial_bce]\npositive_weight = 2.0\n"
    )
    assert resolve(file, method="sarb").method_options == {"alpha": 0.3, "start": 2}
    assert resolve(file, method="partial_bce").method_options == {"positive_weight": 2.0}
    assert resolve(file, method="sarb", method_options={"alpha": 0.7}).method_options == {
        "alpha": 0.7,
        "start": 2,
    }


def test_plain_keys_of_a_section_belong_to_the_recipes_own_choice(recipe):
    file = recipe(
        '[train]\nmethod = "sarb"\nbackbone = "tiny"\n[method]\nalpha = 0.3\n[backbone]\ntrain_stages = 2\n'
    )
    assert resolve(file).method_options == {"alpha": 0.3}
    assert resolve(file, method="partial_bce").method_options == {}
    assert resolve(file).backbone_options == {"train_stages": 2}
    assert resolve(file, backbone="resnet18").backbone_options == {}


def test_learning_rates_of_the_parts(recipe):
    file = recipe("[lr]\nblend = 0.1\nsd = 0.5\n[lr.ssgrl]\nsd = 0.05\n")
    assert resolve(file).lr_scale == {"blend": 0.1, "sd": 0.05}
    assert resolve(file, lr_scale={"sd": 2.0}).lr_scale == {"blend": 0.1, "sd": 2.0}


def test_numbers_and_paths_come_in_the_declared_type(recipe, tmp_path):
    settings = resolve(recipe("[train]\nlr = 1\n"), warmup=2, words=tmp_path / "glove.txt")
    assert isinstance(settings.lr, float) and isinstance(settings.warmup, float)
    assert settings.words == str(tmp_path / "glove.txt")


# errors


def test_all_errors_at_once_with_the_near_match(recipe):
    file = recipe("[train]\nepoch = 3\nlr = -1.0\n[method.sarb]\nalfa = 0.3\n[network.ssgrl]\ndims = 3\n")
    found = problems(
        file,
        batch_size=0,
        schedule="cosin",
        augment=1,
        image_size=4.5,
        backbone="resnet1O1",
        backbone_options={"x": 1},
    )
    text = "\n".join(found)
    assert len(found) == 9, text  # the options of an unknown backbone cannot be checked
    assert "unknown setting 'epoch'. Did you mean 'epochs'?" in found
    assert "lr must be at least 0, got -1.0" in found
    assert "batch_size must be at least 1, got 0" in found
    assert "unknown schedule 'cosin'. Did you mean 'cosine'?" in text
    assert "augment must be bool, got 1" in found
    assert "image_size must be int, got 4.5" in found
    assert "unknown backbone 'resnet1O1'. Did you mean 'resnet101'?" in text
    assert "'alfa'. Did you mean 'alpha'?" in text and "'dims'. Did you mean 'dim'?" in text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epochs": True}, "epochs must be int, got True"),
        ({"lr": "fast"}, "lr must be float, got 'fast'"),
        ({"patience": 0}, "patience must be at least 1, got 0"),
        ({"image_size": 31}, "image_size must be at least 32, got 31"),
        ({"cache": "yes"}, "cache must be bool or None, got 'yes'"),
        ({"epoch": 2}, "unknown setting 'epoch'. Did you mean 'epochs'?"),
        ({"optimizer": "sgd"}, "unknown optimizer 'sgd'. Available: adam, adamw"),
    ],
)
def test_one_wrong_value(given, message):
    found = problems("small", **given)
    assert len(found) == 1 and message in found[0]


@pytest.mark.parametrize(("kind", "name"), [("method", "sabr"), ("network", "sgrl"), ("backbone", "tinny")])
def test_unknown_names(kind, name):
    found = problems("small", **{kind: name})
    assert len(found) == 1 and f"unknown {kind} '{name}'. Did you mean" in found[0]


def test_options_of_another_method_are_refused():
    found = problems("small", method="partial_bce", method_options={"alpha": 0.5})
    assert len(found) == 1 and "option of method 'partial_bce': 'alpha'" in found[0]
    found = problems("small", backbone_options={"train_stage": 1})
    assert "Did you mean 'train_stages'" in found[0]


@pytest.mark.parametrize("table", ["method.sabr", "network.sgrl", "backbone.tinny", "train.sgrl", "lr.sgrl"])
def test_a_misspelt_table_is_not_passed_over(recipe, table):
    assert table.split(".")[1] in "".join(problems(recipe(f"[{table}]\nstart = 1\n")))


@pytest.mark.parametrize("text", ["[method]\nsarb = true\n", "[train]\nssgrl = 3\n"])
def test_a_value_where_a_table_belongs_is_a_config_error(recipe, text):
    assert problems(recipe(text))


@pytest.mark.parametrize("value", ["fast", -1.0, True])
def test_a_learning_rate_factor_is_a_number(value):
    assert "sd" in problems("small", lr_scale={"sd": value})[0]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_learning_rate_is_finite(value):
    assert "lr" in problems("small", lr=value)[0]


def test_option_types():
    assert {"alpha", "beta", "start", "refresh", "form"} <= set(option_types("method", "sarb"))
    assert set(option_types("method", "partial_bce")) == {"form", "positive_weight"}
    assert {"csrl", "dim", "steps"} <= set(option_types("network", "ssgrl"))
    assert set(option_types("backbone", "tiny")) == {"weights", "train_stages", "frozen_norms", "scales"}


# --set


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("method.alpha=0.3", ("method", "alpha", 0.3)),
        ("epochs=3", ("train", "epochs", 3)),
        ("train.lr=1e-3", ("train", "lr", 1e-3)),
        ("network.csrl=sam", ("network", "csrl", "sam")),
        ('network.csrl="sam"', ("network", "csrl", "sam")),
        ("method.learnable=false", ("method", "learnable", False)),
        ("method.learnable=True", ("method", "learnable", True)),
        ("method.contrastive=none", ("method", "contrastive", None)),
        ("backbone.weights=/data/resnet101.pth", ("backbone", "weights", "/data/resnet101.pth")),
        ("words=a=b.txt", ("train", "words", "a=b.txt")),
        (" lr.sd = 0.1", ("lr", "sd", 0.1)),
    ],
)
def test_parse_assignment(text, expected):
    found = parse_assignment(text)
    assert found == expected and type(found[2]) is type(expected[2])


def test_parse_assignment_refuses_what_it_cannot_read():
    with pytest.raises(ConfigError, match=r"method\.alpha: expected name=value"):
        parse_assignment("method.alpha")
    with pytest.raises(ConfigError, match="Did you mean 'method'"):
        parse_assignment("metod.alpha=1")


# what is kept


def test_as_dict_is_ready_for_json_and_complete(tmp_path):
    from sarb.files import read_json, write_json

    settings = resolve("small")
    write_json(tmp_path / "a.json", settings.as_dict())
    assert Settings(**read_json(tmp_path / "a.json")) == settings


def test_network_config_leaves_out_where_the_weights_came_from():
    options = {"weights": "resnet101.pth", "train_stages": 1}
    config = resolve("small", backbone="resnet18", backbone_options=options).network_config()
    assert config["backbone_options"] == {"train_stages": 1} and config["backbone"] == "resnet18"
    assert config["network"] == "ssgrl" and config["image_size"] == resolve("small").image_size


def test_data_that_are_taken_for_a_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("photos", "small"):
        (tmp_path / name).mkdir()
    (tmp_path / "labels.csv").write_text("file_name,cat\n")
    for given in ("labels.csv", "none.csv", "photos"):
        with command_line(), pytest.raises(ConfigError, match=f"did you mean --data {given}"):
            read_recipe(given)
    assert read_recipe("small")["train"]["epochs"] == 5  # a folder of that name does not hide the recipe


def test_epochs_grow_where_images_are_few():
    settings = resolve("small")
    for steps in (1, 3, 7, 71, 72, 73, 1000):
        epochs = settings.epochs  # the slow way: one more until it is enough, at most twenty times as many
        while epochs * steps < settings.min_steps and epochs < 20 * settings.epochs:
            epochs += 1
        assert settings.grown(steps).epochs == epochs


@pytest.mark.parametrize(
    ("every", "pace"),
    [(200, (200, math.inf)), ("7", (7, math.inf)), ("5m", (math.inf, 300)), ("0.5h", (math.inf, 1800))],
)
def test_a_pace_of_checkpoints_is_steps_or_a_time(every, pace):
    assert checkpoint_pace(every) == pace
    assert resolve(checkpoint_every=every).checkpoint_every == every


@pytest.mark.parametrize("every", [0, -1, "5x", "m", "", "nanm", "infs", "1.5"])
def test_any_other_pace_of_checkpoints_is_an_error(every):
    with pytest.raises(ConfigError, match="checkpoint_every must be steps such as 200, a time such as 30s"):
        resolve(checkpoint_every=every)
