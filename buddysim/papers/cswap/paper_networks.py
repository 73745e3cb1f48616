"""The networks, batches and machines of the CSWAP paper (Tab. III); the readings are at the head of reported.toml."""

from __future__ import annotations

from typing import NamedTuple

#: The links that were measured on the paper's servers (Sec. V-A), by their name in both machine files.
LINK = "pcie3-measured"
V100, RTX = "v100", "rtx-2080-ti"
CIFAR10, IMAGENET = "CIFAR-10", "ImageNet"
BELOW, STATIC, CSWAP, ORACLE, HOST = "vdnn-conv-p", "cswap-static", "cswap", "cswap-oracle", "vdnnpp"

#: Networks of the zoo by the paper's name.
ZOO = {
    CIFAR10: {
        "AlexNet": "alexnet-cifar10",
        "VGG16": "vgg16-cifar10",
        "MobileNet": "mobilenet-cifar10",
        "Plain20": "plain20",
        "ResNet": "resnet20",
        "SqueezeNet": "squeezenet-cifar10",
    },
    IMAGENET: {
        "AlexNet": "alexnet",
        "VGG16": "vgg16",
        "MobileNet": "mobilenet",
        "Plain20": "plain20-imagenet",
        "ResNet": "resnet50",
        "SqueezeNet": "squeezenet",
    },
}
NETWORKS = tuple(ZOO[IMAGENET])

_IMAGENET_BATCHES = {V100: (512, 128, 128, 32, 64, 512), RTX: (256, 32, 32, 1, 16, 128)}
_CIFAR10_BATCHES = {V100: (2560,) * 6, RTX: (2560, 2560, 1280, 1024, 1280, 1280)}
#: Plain20 on ImageNet does not train on the 2080 Ti, "even when the batch size is set to one" (Sec. V-A).
BATCHES = {
    (machine, dataset): dict(zip(NETWORKS, batches[machine], strict=True))
    for dataset, batches in ((CIFAR10, _CIFAR10_BATCHES), (IMAGENET, _IMAGENET_BATCHES))
    for machine in (V100, RTX)
}


class Case(NamedTuple):
    """A panel of Fig. 6."""

    panel: str
    machine: str
    dataset: str


CASES = (
    Case("6a", V100, CIFAR10),
    Case("6b", RTX, CIFAR10),
    Case("6c", V100, IMAGENET),
    Case("6d", RTX, IMAGENET),
)

#: The swapped feature maps of VGG16, by the paper's names.
TENSORS = {
    "relu1_1": "ReLU1", "pool1": "MAX1", "relu2_1": "ReLU2", "pool2": "MAX2", "relu3_1": "ReLU3", "relu3_2": "ReLU4",
    "pool3": "MAX3", "relu4_1": "ReLU5", "relu4_2": "ReLU6", "pool4": "MAX4", "relu5_1": "ReLU7", "relu5_2": "ReLU8",
}  # fmt: skip
