"""Predicted bytes saved by PyTorch's autograd equal the measured ones, storage by storage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from tests.training.networks.saved_by_torch import assert_as_measured  # noqa: E402


def conv() -> nn.Conv2d:
    return nn.Conv2d(3, 8, 3, padding=1)


ON_MAPS = {
    "relu": lambda: [nn.ReLU()],
    "relu in place": lambda: [nn.ReLU(inplace=True)],
    "two in place": lambda: [nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Dropout(0.2, inplace=True)],
    "relu6": lambda: [nn.BatchNorm2d(8), nn.ReLU6(), nn.Conv2d(8, 4, 1)],
    "relu6 in place": lambda: [nn.BatchNorm2d(8), nn.ReLU6(inplace=True), nn.Conv2d(8, 4, 1)],
    "silu in place": lambda: [nn.BatchNorm2d(8), nn.SiLU(inplace=True), nn.Conv2d(8, 4, 1)],
    "hardswish": lambda: [nn.Hardswish(), nn.Conv2d(8, 4, 1)],
    "sigmoid": lambda: [nn.Sigmoid(), nn.Conv2d(8, 4, 1)],
    "tanh": lambda: [nn.Tanh(), nn.Conv2d(8, 4, 1)],
    "gelu": lambda: [nn.GELU(), nn.Conv2d(8, 4, 1)],
    "dropout": lambda: [nn.ReLU(), nn.Dropout(0.3), nn.Conv2d(8, 4, 1)],
    "batch norm": lambda: [nn.BatchNorm2d(8), nn.ReLU()],
    "batch norm, plain": lambda: [nn.BatchNorm2d(8, affine=False), nn.ReLU()],
    "lrn": lambda: [nn.ReLU(), nn.LocalResponseNorm(5), nn.Conv2d(8, 4, 1)],
    "max pooling": lambda: [nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(8, 4, 1)],
    "average pooling": lambda: [nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 4, 1)],
    "average of all": lambda: [nn.AvgPool2d(12), nn.Flatten(), nn.Linear(8, 5)],
    "adaptive to one": lambda: [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)],
    "adaptive": lambda: [nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(72, 5)],
    "adaptive, uneven": lambda: [nn.AdaptiveAvgPool2d((5, 7)), nn.Flatten(), nn.Linear(280, 5)],
    "adaptive to itself": lambda: [nn.AdaptiveAvgPool2d(12), nn.ReLU(), nn.Flatten(), nn.Linear(1152, 5)],
    "depthwise": lambda: [nn.Conv2d(8, 8, 3, groups=8), nn.BatchNorm2d(8), nn.ReLU6(inplace=True)],
    "dense": lambda: [nn.Flatten(), nn.Linear(1152, 20), nn.ReLU(), nn.Dropout(), nn.Linear(20, 5), nn.LogSoftmax(1)],
}


@pytest.mark.parametrize("name", ON_MAPS)
def test_layers_of_maps(name: str) -> None:
    assert_as_measured(nn.Sequential(conv(), *ON_MAPS[name]()), (3, 12, 12))


def test_nothing_is_saved_before_the_first_weights() -> None:
    assert_as_measured(nn.Sequential(nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(108, 5)), (3, 12, 12))


class Residual(nn.Module):
    """A block of ResNet, as torchvision's and with sums in place."""

    def __init__(self, before: int, channels: int, stride: int, in_place: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=in_place)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.project = None
        if stride > 1 or before != channels:
            self.project = nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))
        self.in_place = in_place

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        branch = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(maps)))))
        shortcut = maps if self.project is None else self.project(maps)
        if self.in_place:
            branch += shortcut
        else:
            branch = branch + shortcut
        return self.relu(branch)


class Inverted(nn.Module):
    """A block of MobileNet v2."""

    def __init__(self, channels: int, wide: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(inplace=True)),
            *(nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False), nn.BatchNorm2d(wide)),
            *(nn.ReLU6(inplace=True), nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels)),
        )

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return maps + self.layers(maps)


class Dense(nn.Module):
    """Layers of a DenseNet, each of which reads all before it."""

    def __init__(self, channels: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                *(nn.BatchNorm2d(channels + growth * i), nn.ReLU(inplace=True)),
                *(nn.Conv2d(channels + growth * i, 4 * growth, 1, bias=False), nn.BatchNorm2d(4 * growth)),
                *(nn.ReLU(inplace=True), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)),
            )
            for i in range(layers)
        )

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        outputs = [maps]
        for layer in self.layers:
            outputs.append(layer(torch.cat(outputs, 1)))
        return torch.cat(outputs, 1)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_residual_blocks(in_place: bool, stride: int) -> None:
    blocks = [Residual(8, 8, 1, in_place), Residual(8, 12, stride, in_place)]
    assert_as_measured(
        nn.Sequential(conv(), nn.BatchNorm2d(8), nn.ReLU(in_place), *blocks, nn.AvgPool2d(2)), (3, 12, 12)
    )


def test_inverted_and_dense_blocks() -> None:
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(8, 5)]
    assert_as_measured(nn.Sequential(conv(), Inverted(8, 24), Inverted(8, 24), *head), (3, 12, 12))
    head = [nn.BatchNorm2d(20), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(20, 5)]
    assert_as_measured(nn.Sequential(conv(), nn.MaxPool2d(3, 2), Dense(8, 4, 3), *head), (3, 12, 12))


def resnet18() -> nn.Module:
    widths = (
        (64, 64, 1),
        (64, 64, 1),
        (64, 128, 2),
        (128, 128, 1),
        (128, 256, 2),
        (256, 256, 1),
        (256, 512, 2),
        (512, 512, 1),
    )
    return nn.Sequential(
        *stem(64),
        *(Residual(*width, in_place=True) for width in widths),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)),
    )


class Bottleneck(nn.Module):
    """A block of ResNet-50, as torchvision's."""

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        wide = 4 * channels
        self.conv1, self.norm1 = nn.Conv2d(before, channels, 1, bias=False), nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.conv3, self.norm3 = nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide)
        self.relu = nn.ReLU(inplace=True)
        self.project = None
        if before != wide:
            self.project = nn.Sequential(nn.Conv2d(before, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        branch = self.relu(self.norm1(self.conv1(maps)))
        branch = self.norm3(self.conv3(self.relu(self.norm2(self.conv2(branch)))))
        branch += maps if self.project is None else self.project(maps)
        return self.relu(branch)


def resnet50() -> nn.Module:
    blocks, before = [], 64
    for count, channels, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for number in range(count):
            blocks.append(Bottleneck(before, channels, 1 if number else stride))
            before = 4 * channels
    return nn.Sequential(*stem(64), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def stem(channels: int) -> list[nn.Module]:
    return [
        *(nn.Conv2d(3, channels, 7, 2, padding=3, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True)),
        nn.MaxPool2d(3, 2, padding=1),
    ]


class Expanded(nn.Module):
    """A block of MobileNet v2 with another width or stride."""

    def __init__(self, before: int, channels: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide, layers = before * expansion, []
        if expansion > 1:
            layers += [nn.Conv2d(before, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(inplace=True)]
        layers += [nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide)]
        layers += [nn.ReLU6(inplace=True), nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels)]
        self.layers, self.shortcut = nn.Sequential(*layers), stride == 1 and before == channels

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return maps + self.layers(maps) if self.shortcut else self.layers(maps)


def mobilenet_v2() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6(inplace=True)]
    table = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    before = 32
    for expansion, channels, count, stride in table:
        for number in range(count):
            layers.append(Expanded(before, channels, 1 if number else stride, expansion))
            before = channels
    layers += [nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6(inplace=True)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000))


def densenet121() -> nn.Module:
    layers, channels = stem(64), 64
    for number, count in enumerate((6, 12, 24, 16)):
        if number:
            layers += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
            layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
            channels //= 2
        layers.append(Dense(channels, 32, count))
        channels += 32 * count
    layers += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(channels, 1000))


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (resnet18, 11_689_512),
        *(
            pytest.param(make, parameters, marks=pytest.mark.slow)
            for make, parameters in ((resnet50, 25_557_032), (mobilenet_v2, 3_504_872), (densenet121, 7_978_856))
        ),
    ],
)
def test_whole_networks(make: Callable[[], nn.Module], parameters: int) -> None:
    """torchvision's networks, by their published parameters."""
    module = make()
    assert sum(parameter.numel() for parameter in module.parameters()) == parameters
    assert_as_measured(module, (3, 64, 64), 2)


class Language(nn.Module):
    """A GPT: learned positions, a fused or unfused attention kernel, and a shared table for scores."""

    def __init__(self, tokens: int, wide: int, heads: int, probability: float, fused: bool, tied: bool = True) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(50, wide), nn.Embedding(2 * tokens, wide)
        self.drop = nn.Dropout(probability)
        self.blocks = nn.ModuleList(Block(tokens, wide, heads, probability, fused) for _ in range(2))
        self.norm = nn.LayerNorm(wide)
        self.scores = nn.Linear(wide, 50, bias=False)
        if tied:
            self.scores.weight = self.words.weight

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(0, numbers.size(1), dtype=torch.long)
        features = self.drop(self.words(numbers) + self.positions(positions))
        for block in self.blocks:
            features = block(features)
        return self.scores(self.norm(features))


class Block(nn.Module):
    def __init__(self, tokens: int, wide: int, heads: int, probability: float, fused: bool) -> None:
        super().__init__()
        self.heads, self.probability, self.fused = heads, probability, fused
        self.norm1, self.norm2 = nn.LayerNorm(wide), nn.LayerNorm(wide)
        self.attend, self.project = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)
        self.dense = nn.Sequential(
            nn.Linear(wide, 4 * wide), nn.GELU(), nn.Linear(4 * wide, wide), nn.Dropout(probability)
        )
        self.drop_scores, self.drop = nn.Dropout(probability), nn.Dropout(probability)
        self.register_buffer("earlier", torch.tril(torch.ones(tokens, tokens)).view(1, 1, tokens, tokens))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        features = features + self.attention(self.norm1(features))
        return features + self.dense(self.norm2(features))

    def attention(self, features: torch.Tensor) -> torch.Tensor:
        batch, tokens, wide = features.size()
        query, key, value = self.attend(features).split(wide, dim=2)
        query = query.view(batch, tokens, self.heads, wide // self.heads).transpose(1, 2)
        key = key.view(batch, tokens, self.heads, wide // self.heads).transpose(1, 2)
        value = value.view(batch, tokens, self.heads, wide // self.heads).transpose(1, 2)
        if self.fused:
            mixed = functional.scaled_dot_product_attention(
                query, key, value, dropout_p=self.probability, is_causal=True
            )
        else:
            scores = (query @ key.transpose(-2, -1)) * (1.0 / (wide // self.heads) ** 0.5)
            scores = scores.masked_fill(self.earlier[:, :, :tokens, :tokens] == 0, float("-inf"))
            mixed = self.drop_scores(functional.softmax(scores, dim=-1)) @ value
        return self.drop(self.project(mixed.transpose(1, 2).contiguous().view(batch, tokens, wide)))


@pytest.mark.parametrize("probability", [0.0, 0.1])
@pytest.mark.parametrize("fused", [False, True])
def test_a_small_gpt(probability: float, fused: bool) -> None:
    assert_as_measured(Language(7, 12, 3, probability, fused), (7,), words=50)


class Attended(nn.Module):
    """MultiheadAttention on one, two or three tensors, with or without returned weights."""

    def __init__(self, shared: str, weights: bool, probability: float) -> None:
        super().__init__()
        self.first = nn.Linear(12, 12)
        self.others = nn.ModuleList(nn.Linear(12, 12) for _ in range(len(set(shared)) - 1))
        self.attention = nn.MultiheadAttention(12, 3, dropout=probability, batch_first=True)
        self.shared, self.weights = shared, weights

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        made = [self.first(features), *(one(features) for one in self.others)]
        query, key, value = (made[int(index)] for index in self.shared)
        return self.attention(query, key, value, need_weights=self.weights)[0]


@pytest.mark.parametrize("probability", [0.0, 0.2])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("shared", ["000", "011", "012"])
def test_multihead_attention(shared: str, weights: bool, probability: float) -> None:
    assert_as_measured(Attended(shared, weights, probability), (5, 12))


@pytest.mark.parametrize("probability", [0.0, 0.1])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_stock_encoder(probability: float, norm_first: bool, activation: str) -> None:
    layer = nn.TransformerEncoderLayer(12, 3, 20, probability, activation, batch_first=True, norm_first=norm_first)
    assert_as_measured(nn.Sequential(nn.Linear(12, 12), layer), (5, 12))
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(12), enable_nested_tensor=False)
    assert_as_measured(nn.Sequential(nn.Embedding(50, 12), encoder, nn.Linear(12, 50)), (5,), words=50)


class Translation(nn.Module):
    """A decoder over an encoding of the same tokens."""

    def __init__(self, probability: float, norm_first: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 12)
        options = {"batch_first": True, "norm_first": norm_first}
        self.encoder = nn.TransformerEncoderLayer(12, 3, 20, probability, **options)
        layer = nn.TransformerDecoderLayer(12, 3, 20, probability, **options)
        self.decoder = nn.TransformerDecoder(layer, 2, nn.LayerNorm(12))

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        features = self.words(numbers)
        later = nn.Transformer.generate_square_subsequent_mask(5)
        return self.decoder(features, self.encoder(features), tgt_mask=later, tgt_is_causal=True)


@pytest.mark.parametrize("probability", [0.0, 0.1])
@pytest.mark.parametrize("norm_first", [False, True])
def test_stock_decoder(probability: float, norm_first: bool) -> None:
    assert_as_measured(Translation(probability, norm_first), (5,), words=50)


class Recurrent(nn.Module):
    def __init__(self, layers: int, probability: float, projection: int) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 12)
        self.memory = nn.LSTM(12, 10, layers, dropout=probability, proj_size=projection, batch_first=True)
        self.drop = nn.Dropout(probability)
        self.scores = nn.Linear(projection or 10, 50)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        features, _ = self.memory(self.words(numbers))
        return self.scores(self.drop(features))


@pytest.mark.parametrize("probability", [0.0, 0.1])
@pytest.mark.parametrize("projection", [0, 4])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.filterwarnings("ignore:dropout option")
def test_lstm_language_model(layers: int, probability: float, projection: int) -> None:
    assert_as_measured(Recurrent(layers, probability, projection), (5,), words=50)


@st.composite
def stacks_of_maps(draw: st.DrawFn) -> tuple[nn.Module, int]:
    """Generate a CONV, random layers and blocks, and a classifier; and the side of the image."""
    channels, layers, side = 3, [], draw(st.integers(8, 14))
    for number in range(draw(st.integers(1, 6))):
        wide, in_place = draw(st.sampled_from((4, 6, 8))), draw(st.booleans())
        what = draw(st.sampled_from(("conv", "residual", "inverted", "dense", "dropout", "pool", "lrn")))
        if what == "conv" or not number:
            layers += [nn.Conv2d(channels, wide, 3, padding=1), nn.BatchNorm2d(wide)]
            layers.append(draw(st.sampled_from((nn.ReLU, nn.ReLU6, nn.SiLU, nn.Hardswish)))(inplace=in_place))
            channels = wide
        elif what == "residual":
            layers.append(Residual(channels, wide, draw(st.sampled_from((1, 2))), in_place))
            channels = wide
        elif what == "inverted":
            layers.append(Inverted(channels, 2 * channels))
        elif what == "dense":
            layers.append(Dense(channels, 2, 2))
            channels += 4
        elif what == "dropout":
            layers.append(nn.Dropout(0.3, inplace=draw(st.booleans())))
        elif what == "pool":
            layers.append(draw(st.sampled_from((nn.MaxPool2d(2, 1), nn.AvgPool2d(2, 1), nn.AdaptiveAvgPool2d(3)))))
        else:
            layers.append(nn.LocalResponseNorm(draw(st.sampled_from((2, 3, 5)))))
    out = draw(st.sampled_from((1, 2)))
    layers += [nn.AdaptiveAvgPool2d(out), nn.Flatten(), nn.Linear(channels * out**2, 5)]
    return nn.Sequential(*layers), side


@given(stacks_of_maps(), st.integers(2, 4))
@settings(max_examples=10, deadline=None)
def test_random_networks_of_maps(stack: tuple[nn.Module, int], batch: int) -> None:
    module, side = stack
    assert_as_measured(module, (3, side, side), batch)


@pytest.mark.slow
@given(stacks_of_maps(), st.integers(2, 4))
@settings(max_examples=50, deadline=None)
def test_many_random_networks_of_maps(stack: tuple[nn.Module, int], batch: int) -> None:
    module, side = stack
    assert_as_measured(module, (3, side, side), batch)


class Sequence(nn.Module):
    """Random layers of language models, one after the other."""

    def __init__(self, names: tuple[str, ...], tokens: int, heads: int, each: int, probability: float) -> None:
        super().__init__()
        wide = heads * each
        self.words = nn.Embedding(30, wide)
        options = {"batch_first": True, "dropout": probability}
        made = {
            "encoder": lambda: nn.TransformerEncoderLayer(wide, heads, 3 * wide, **options),
            "gpt": lambda: Block(tokens, wide, heads, probability, fused=True),
            "written out": lambda: Block(tokens, wide, heads, probability, fused=False),
            "lstm": lambda: First(nn.LSTM(wide, wide, batch_first=True)),
            "norm": lambda: nn.LayerNorm(wide),
            "dropout": lambda: nn.Dropout(probability),
            "dense": lambda: nn.Sequential(nn.Linear(wide, 2 * wide), nn.GELU(), nn.Linear(2 * wide, wide)),
        }
        self.layers = nn.ModuleList(made[name]() for name in names)
        self.scores = nn.Linear(wide, 30)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        features = self.words(numbers)
        for layer in self.layers:
            features = layer(features)
        return functional.log_softmax(self.scores(features), dim=-1)


class First(nn.Module):
    """A layer with several outputs, of which the first is returned."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.layer(features)[0]


@given(
    st.lists(st.sampled_from(("encoder", "gpt", "written out", "lstm", "norm", "dropout", "dense")), max_size=4),
    st.integers(2, 6),
    st.integers(1, 3),
    st.integers(2, 5),
    st.sampled_from((0.0, 0.2)),
    st.integers(2, 4),
)
@settings(max_examples=25, deadline=None)
def test_random_language_models(
    names: list[str], tokens: int, heads: int, each: int, probability: float, batch: int
) -> None:
    assert_as_measured(Sequence(tuple(names), tokens, heads, each, probability), (tokens,), batch, words=30)


@pytest.mark.parametrize("probability", [0.0, 0.1])
def test_copy_is_saved_next_to_its_source(probability: float) -> None:
    """Tanh saves its output, and the layer that reads it saves a copy in another order."""
    lstm = First(nn.LSTM(12, 12, batch_first=True))
    assert_as_measured(nn.Sequential(nn.Linear(12, 12), nn.Tanh(), lstm, nn.Tanh(), nn.Linear(12, 5)), (5, 12))
    encoder = nn.TransformerEncoderLayer(12, 3, 20, probability, batch_first=True)
    assert_as_measured(nn.Sequential(nn.Linear(12, 12), nn.Tanh(), encoder), (5, 12))
    assert_as_measured(nn.Sequential(First(nn.LSTM(12, 12, batch_first=True)), encoder), (5, 12))
