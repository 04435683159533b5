// A small GPT: a decoder-only transformer that predicts the next character of a text.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <torch/torch.h>

struct GptOptions {
  std::int64_t vocabulary = 65;  // characters of the text
  std::int64_t context = 256;    // the most characters that the model sees
  std::int64_t width = 384;
  std::int64_t heads = 6;
  std::int64_t layers = 6;
};

/// Attention of each position to itself and earlier positions.
struct AttentionImpl : torch::nn::Module {
  explicit AttentionImpl(const GptOptions& options)
      : heads(options.heads),
        qkv(torch::nn::LinearOptions(options.width, 3 * options.width).bias(false)),
        out(torch::nn::LinearOptions(options.width, options.width).bias(false)) {
    register_module("qkv", qkv);
    register_module("out", out);
  }

  /// [batch, time, width] -> the same
  torch::Tensor forward(const torch::Tensor& x) {
    const std::int64_t batch = x.size(0), time = x.size(1), width = x.size(2);
    const auto parts = qkv(x).view({batch, time, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
    const torch::Tensor mixed = torch::scaled_dot_product_attention(
        parts[0], parts[1], parts[2], /*attn_mask=*/{}, /*dropout_p=*/0, /*is_causal=*/true);
    return out(mixed.transpose(1, 2).reshape({batch, time, width}));
  }

  std::int64_t heads;
  torch::nn::Linear qkv, out;
};
TORCH_MODULE(Attention);

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(const GptOptions& options)
      : norm1(torch::nn::LayerNormOptions({options.width})),
        norm2(torch::nn::LayerNormOptions({options.width})),
        attention(options),
        up(torch::nn::LinearOptions(options.width, 4 * options.width).bias(false)),
        down(torch::nn::LinearOptions(4 * options.width, options.width).bias(false)) {
    register_module("norm1", norm1);
    register_module("attention", attention);
    register_module("norm2", norm2);
    register_module("up", up);
    register_module("down", down);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = x + attention(norm1(x));
    return x + down(torch::gelu(up(norm2(x))));
  }

  torch::nn::LayerNorm norm1, norm2;
  Attention attention;
  torch::nn::Linear up, down;
};
TORCH_MODULE(Block);

struct GptImpl : torch::nn::Module {
  explicit GptImpl(const GptOptions& options)
      : characters(options.vocabulary, options.width),
        positions(options.context, options.width),
        norm(torch::nn::LayerNormOptions({options.width})),
        head(torch::nn::LinearOptions(options.width, options.vocabulary).bias(false)) {
    register_module("characters", characters);
    register_module("positions", positions);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i), Block(options)));
    }
    register_module("norm", norm);
    register_module("head", head);
    const torch::NoGradGuard no_grad;
    for (auto& item : named_parameters()) {
      if (item->dim() > 1) torch::nn::init::normal_(*item, 0, 0.02);
    }
    // Each block adds twice to the residual stream, so its last layers begin smaller.
    const double scale = 0.02 / std::sqrt(2.0 * static_cast<double>(options.layers));
    for (const Block& block : blocks) {
      torch::nn::init::normal_(block->attention->out->weight, 0, scale);
      torch::nn::init::normal_(block->down->weight, 0, scale);
    }
  }

  /// Characters [batch, time], integers below `vocabulary` -> logits [batch, time, vocabulary]
  torch::Tensor forward(const torch::Tensor& text) {
    torch::Tensor x = characters(text) + positions(torch::arange(text.size(1), text.options()));
    for (Block& block : blocks) x = block(x);
    return head(norm(x));
  }

  torch::nn::Embedding characters, positions;
  std::vector<Block> blocks;
  torch::nn::LayerNorm norm;
  torch::nn::Linear head;
};
TORCH_MODULE(Gpt);
