"""Networks read from PyTorch modules, compared with the zoo's graphs and PyTorch's own counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.training import Layer
from buddysim.training.named_network import load_network

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from buddysim.training.networks.from_torch import functions, network_from_torch  # noqa: E402


class Vgg(nn.Module):
    def __init__(self, convs: tuple[int, ...]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for count, channels in zip(convs, (64, 128, 256, 512, 512), strict=True):
            for _ in range(count):
                layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU(inplace=True)]
                before = channels
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            *(nn.Linear(512 * 49, 4096), nn.ReLU(), nn.Dropout()),
            *(nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout()),
            nn.Linear(4096, 1000),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return functional.log_softmax(self.classifier(torch.flatten(self.features(images), 1)), dim=1)


class Bottleneck(nn.Module):
    def __init__(self, before: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        wide = 4 * channels
        self.reduce = nn.Sequential(nn.Conv2d(before, channels, 1, bias=False), nn.BatchNorm2d(channels))
        self.middle = nn.Sequential(
            nn.Conv2d(channels, channels, 3, stride, padding=1, bias=False), nn.BatchNorm2d(channels)
        )
        self.increase = nn.Sequential(nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide))
        self.project = None
        if before != wide:
            self.project = nn.Sequential(nn.Conv2d(before, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        branch = functional.relu(self.middle(functional.relu(self.reduce(images))))
        branch = self.increase(branch)
        shortcut = images if self.project is None else self.project(images)
        return functional.relu(branch + shortcut)


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.norm = nn.BatchNorm2d(64)
        blocks: list[nn.Module] = []
        before = 64
        for stage, (count, channels) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512), strict=True)):
            for number in range(count):
                blocks.append(Bottleneck(before, channels, 2 if stage and not number else 1))
                before = 4 * channels
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(2048, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = functional.max_pool2d(functional.relu(self.norm(self.conv(images))), 3, 2, 1)
        means = self.blocks(maps).mean((2, 3))
        return functional.softmax(self.fc(means), dim=1)


def description(layer: Layer) -> tuple[object, ...]:
    """Return all properties of a layer except its name."""
    return (
        *(layer.kind, layer.inputs, layer.output_shape, layer.parameters, layer.conv, layer.gemms, layer.in_place),
        *(layer.part, layer.backward_reads, layer.flops, layer.saved_sample_bytes, layer.saved_fixed_bytes),
    )


@pytest.mark.parametrize(("name", "convs"), [("vgg11", (1, 1, 2, 2, 2)), ("vgg19", (2, 2, 4, 4, 4))])
def test_vgg_is_the_zoos(name: str, convs: tuple[int, ...]) -> None:
    with torch.device("meta"):
        network = network_from_torch(Vgg(convs), (3, 224, 224))
    assert list(map(description, network.layers)) == list(map(description, load_network(name).layers))


def test_resnet_is_the_zoos() -> None:
    with torch.device("meta"):
        module = ResNet50()
    network = network_from_torch(module, (3, 224, 224))
    assert list(map(description, network.layers)) == list(map(description, load_network("resnet50").layers))
    assert network.parameters == sum(parameter.numel() for parameter in module.parameters())


class Mixture(nn.Module):
    """The module uses functions, methods, views, joins, padding by name, and a shared table."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Conv2d(3, 8, 3, padding="same")
        self.right = nn.Conv2d(3, 4, (1, 3), padding=(0, 1), groups=1)
        self.depthwise = nn.Conv2d(12, 12, 3, groups=12, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.out = nn.Linear(48, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = torch.cat([self.left(images).relu(), torch.tanh(self.right(images))], dim=1)
        maps = maps + torch.sigmoid(self.depthwise(maps))
        maps = functional.avg_pool2d(functional.max_pool2d(maps, 3, 2, ceil_mode=True), 2)
        maps = functional.dropout(self.pool(maps), 0.2)
        return self.out(maps.view(maps.size(0), -1))


def test_a_mixture_of_everything() -> None:
    network = network_from_torch(Mixture(), (3, 16, 16))
    assert [layer.kind for layer in network.layers] == [
        *("input", "conv", "relu", "conv", "tanh", "concat", "conv", "sigmoid", "add", "maxpool", "avgpool", "avgpool"),
        *("dropout", "fc"),
    ]
    assert network.layers[9].output_shape == (12, 8, 8)
    assert network.layers[5].output_shape == (12, 16, 16)


class Language(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.norm = nn.LayerNorm(32)
        self.attention = nn.MultiheadAttention(32, 4, dropout=0.1, batch_first=True)
        self.memory = nn.LSTM(32, 48, num_layers=2, proj_size=32, batch_first=True)
        self.scores = nn.Linear(32, 100, bias=False)
        self.scores.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        features = self.words(tokens)
        normed = self.norm(features)
        features = features + self.attention(normed, normed, normed)[0]
        features, _ = self.memory(features)
        return self.scores(features)


def test_language_model_with_a_shared_table() -> None:
    module = Language()
    network = network_from_torch(module, (7,))
    assert network.parameters == sum(parameter.numel() for parameter in module.parameters())
    assert network.layers[-1].parameters == 0
    assert network.layers[-1].output_shape == (7, 100)
    assert [layer.kind for layer in network.layers].count("lstm") == 2


class VisionTransformer(nn.Module):
    """torchvision's vision transformer: patches by a CONV, a class token and position parameters."""

    def __init__(self, features: int, heads: int, blocks: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, features, 16, 16)
        self.class_token = nn.Parameter(torch.zeros(1, 1, features))
        self.positions = nn.Parameter(torch.zeros(1, 197, features))
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": nn.LayerNorm(features),
                    "attention": nn.MultiheadAttention(features, heads, batch_first=True),
                    "norm2": nn.LayerNorm(features),
                    "dense": nn.Sequential(
                        *(nn.Linear(features, 4 * features), nn.GELU(), nn.Dropout(0.0)),
                        *(nn.Linear(4 * features, features), nn.Dropout(0.0)),
                    ),
                }
            )
            for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(features)
        self.head = nn.Linear(features, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = self.patches(images)
        tokens = maps.reshape(images.shape[0], maps.shape[1], -1).permute(0, 2, 1)
        tokens = torch.cat([self.class_token.expand(images.shape[0], -1, -1), tokens], dim=1) + self.positions
        for block in self.blocks:
            normed = block["norm1"](tokens)
            tokens = tokens + block["attention"](normed, normed, value=normed, need_weights=False)[0]
            tokens = tokens + block["dense"](block["norm2"](tokens))
        return functional.softmax(self.head(self.norm(tokens)[:, 0]), dim=1)


def test_vision_transformer_is_the_zoos() -> None:
    """Networks agree from the positions on; before them the zoo has one layer where the module has three."""
    with torch.device("meta"):
        network = network_from_torch(VisionTransformer(768, 12, 12), (3, 224, 224))
    zoo = load_network("vit-b16")
    attention = ("attention", "copy", "part", "matmul")  # a fused kernel here, written out there
    compared_kinds = ("layernorm", "gelu", "add", "take")
    module_layers, zoo_layers = (
        [
            (layer.kind, layer.output_shape, layer.flops, layer.part)
            for layer in one.layers
            if layer.kind in compared_kinds
        ]
        for one in (network, zoo)
    )
    assert [layer.kind for layer in network.layers[2:6]] == ["reshape", "reshape", "prepend", "positions"]
    assert module_layers == zoo_layers
    assert [layer.kind for layer in network.layers if layer.kind in attention].count("attention") == 12
    products = [sum(gemm.multiply_adds for layer in one.layers for gemm in layer.gemms) for one in (network, zoo)]
    assert products[0] == products[1]
    assert network.parameters == zoo.parameters == 86_567_656


def test_a_single_layer() -> None:
    assert network_from_torch(nn.Conv2d(3, 4, 3), (3, 8, 8)).layers[1].output_shape == (4, 6, 6)


def test_activations_in_place_as_the_module_has_them() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
    everywhere = network_from_torch(module, (4,))
    written = network_from_torch(module, (4,), in_place_as_written=True)
    assert [layer.in_place for layer in everywhere.layers] == [False, False, True, False, True, False]
    assert [layer.in_place for layer in written.layers] == [False, False, False, False, True, False]


class Activated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third, self.fourth = (nn.Linear(4, 4) for _ in range(4))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        values = torch.relu_(self.second(self.first(values).relu_()))
        return torch.relu(self.fourth(self.third(values).relu()))


def test_functions_and_methods_in_place_as_their_names_say() -> None:
    written = network_from_torch(Activated(), (4,), in_place_as_written=True)
    assert [layer.in_place for layer in written.layers if layer.kind == "relu"] == [True, True, False, False]


class Branching(nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images if images.sum() > 0 else -images


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.used(values)


class Divided(nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values / torch.tanh(values)


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(4))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values + self.shift


@pytest.mark.parametrize(
    ("module", "shape", "problem"),
    [
        (Branching(), (3, 4, 4), "^Branching: aten._local_scalar_dense.default depends on values"),
        (nn.Sequential(nn.Conv2d(3, 4, 3)), (4, 8, 8), "^Sequential: the module doesn't run on these inputs"),
        (Divided(), (4,), "^Divided: nothing is trained"),
        (nn.MultiheadAttention(4, 2, batch_first=True), (5, 4), "^MultiheadAttention: the module doesn't run"),
    ],
)
def test_a_module_that_pytorch_cannot_train_is_an_error(
    module: nn.Module, shape: tuple[int, ...], problem: str
) -> None:
    with pytest.raises(BuddysimError, match=problem) as refused:
        network_from_torch(module, shape)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (Unused(), (4,)),
        (Shifted(), (4,)),
        (nn.Sequential(nn.ConvTranspose2d(3, 4, 3)), (3, 8, 8)),
        (nn.Sequential(nn.Conv2d(3, 4, 2, padding="same")), (3, 8, 8)),
        (nn.Sequential(nn.Linear(4, 4), nn.RMSNorm(4)), (4,)),
    ],
)
def test_what_is_no_kind_of_layer_is_recorded(module: nn.Module, shape: tuple[int, ...]) -> None:
    network = network_from_torch(module, shape)
    assert network.recorded
    assert network.parameters == sum(one.numel() for one in module.parameters())
    assert network.input_shape == shape


def test_written_as_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "model.py", tmp_path / "model.toml"
    source.write_text(
        "from torch import nn\n\ndef make():\n    return nn.Sequential(nn.Flatten(), nn.Linear(12, 3), nn.ReLU())\n"
        "def norm():\n    return nn.RMSNorm(2)\n",
        encoding="utf-8",
    )
    assert (
        main(
            ["networks", "from-torch", f"{source}:make", "--input-shape", "3x2x2", "--name", "tiny", "-o", str(target)]
        )
        == 0
    )
    assert "tiny, 2 layers, 39 parameters" in capsys.readouterr().out
    assert load_network(target).layers[1].output_shape == (3,)
    for named, problem in (
        (f"{source}:norm", "can't be a network file"),
        (f"{source}:mak", r"isn't there (nearest: make)"),
        (f"{source}", "expected FILE.py:NAME"),
        (f"{tmp_path}/absent.py:make", "no such file"),
        ("math:pi", "expected a torch.nn.Module"),
    ):
        assert main(["networks", "from-torch", named, "--input-shape", "3x2x2"]) == 2
        assert problem in capsys.readouterr().err


def test_what_a_step_saves_is_written_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of any module, one without a kind of layer too: RMSNorm saves its input, its weight and a number a row."""
    source, target = tmp_path / "model.py", tmp_path / "model.json"
    source.write_text("from torch import nn\n\ndef norm():\n    return nn.RMSNorm(4)\n", encoding="utf-8")
    command = ["networks", "from-torch", f"{source}:norm", "--input-shape", "3x4", "-o", str(target)]
    assert main(command) == 0
    assert "RMSNorm, 4 parameters, every saved tensor of one sample" in capsys.readouterr().out
    content = json.loads(target.read_text(encoding="utf-8"))
    assert (content["parameters"], content["memory"]["weights_bytes"]) == (4, 16)
    assert content["memory"]["saved_bytes"] == 3 * 4  # the input is not the step's own
    assert [(one["name"], one["shape"], one["bytes"]) for one in content["saved_tensors"]] == [
        ("input", [1, 3, 4], 48),
        ("weight", [4], 16),
        ("result1", [1, 3, 1], 12),
    ]


class Joined(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.layer(values), values], 1)


def test_arguments_that_a_reader_does_not_expect_make_it_a_recorded_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may give anything, and a reader may raise anything."""
    assert not network_from_torch(Joined(), (4,)).recorded

    def confused(*arguments: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setitem(functions._WITH_ARGUMENTS, "cat", confused)
    assert network_from_torch(Joined(), (4,)).recorded
