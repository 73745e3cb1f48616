"""Whisper of transformers: convolutions over a spectrogram, an encoder and a decoder."""

import sys

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 5
config = WhisperConfig(
    vocab_size=300,
    num_mel_bins=40,
    d_model=64,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=128,
    decoder_ffn_dim=128,
    max_source_positions=100,
    max_target_positions=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
    dropout=0.1,
)
model = WhisperForConditionalGeneration(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0)
for step in range(3):
    features, labels = torch.randn(batch, 40, 200), torch.randint(3, 300, (batch, 30))
    optimizer.zero_grad()
    loss = model(input_features=features, labels=labels).loss
    loss.backward()
    optimizer.step()
    print(step, loss.item())
