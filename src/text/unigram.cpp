#include "text/unigram.h"

#include <algorithm>

#include "base/check.h"
#include "text/unicode.h"

namespace inferd {
namespace {

constexpr double kUnknownPenalty = 10;

}  // namespace

size_t Unigram::edge_slot(uint32_t node, uint8_t byte) const {
  const uint64_t key = uint64_t{node} << 8 | byte;
  const size_t mask = edges_.size() - 1;
  size_t at = static_cast<size_t>((key ^ key >> 29) * 0x9E3779B97F4A7C15u >> 24) & mask;
  while (edges_[at].node_plus_1 != 0 && (edges_[at].node_plus_1 != node + 1 || edges_[at].byte != byte)) {
    at = (at + 1) & mask;
  }
  return at;
}

uint32_t Unigram::child(uint32_t node, uint8_t byte) const {
  const Edge& edge = edges_[edge_slot(node, byte)];
  return edge.node_plus_1 == 0 ? 0 : edge.child;
}

void Unigram::add(std::string_view token, int32_t id, double score) {
  uint32_t node = 0;
  for (const char c : token) {
    const auto byte = static_cast<uint8_t>(c);
    Edge& edge = edges_[edge_slot(node, byte)];
    if (edge.node_plus_1 != 0) {
      node = edge.child;
      continue;
    }
    edge = {node + 1, static_cast<uint32_t>(tokens_.size()), byte};
    node = edge.child;
    tokens_.push_back({});
    if (tokens_.size() * 3 > edges_.size() * 2) {
      std::vector<Edge> old(edges_.size() * 2);
      old.swap(edges_);
      for (const Edge& moved : old) {
        if (moved.node_plus_1 != 0) edges_[edge_slot(moved.node_plus_1 - 1, moved.byte)] = moved;
      }
    }
  }
  INFERD_CHECK(node != 0 && tokens_[node].id < 0, "a token twice, or an empty one");
  tokens_[node] = {id, score};
  count_score(score);
}

void Unigram::count_score(double score) {
  lowest_score_ = std::min(lowest_score_, score);
}

void Unigram::finish() {
  all_bytes_ = std::ranges::all_of(bytes_, [](int32_t id) { return id >= 0; });
  if (lowest_score_ == std::numeric_limits<double>::infinity()) lowest_score_ = 0;
}

void Unigram::encode(std::string_view piece, std::vector<int32_t>& out, Scratch& scratch) const {
  auto& nodes = scratch.nodes;
  nodes.assign(piece.size() + 1, {0, -1, 0});
  const double unknown_score = lowest_score_ - kUnknownPenalty;
  const auto offer = [&](size_t begin, size_t end, int32_t id, double score) {
    Scratch::Node& node = nodes[end];
    const double whole = nodes[begin].score + score;
    if (node.bytes != 0 && whole <= node.score) return;
    node = {whole, id, static_cast<uint32_t>(end - begin)};
  };
  for (size_t begin = 0; begin < piece.size();) {
    size_t character_end = begin;
    next_code_point(piece, character_end);
    bool covered = false;
    uint32_t node = 0;
    for (size_t at = begin; at < piece.size();) {
      node = child(node, static_cast<uint8_t>(piece[at]));
      if (node == 0) break;
      ++at;
      if (tokens_[node].id < 0) continue;
      offer(begin, at, tokens_[node].id, tokens_[node].score);
      covered = covered || at == character_end;
    }
    if (!covered) offer(begin, character_end, -1, unknown_score);
    begin = character_end;
  }
  auto& backwards = scratch.backwards;
  backwards.clear();
  bool in_unknown = false;
  for (size_t end = piece.size(); end > 0;) {
    const Scratch::Node node = nodes[end];
    const size_t begin = end - node.bytes;
    if (node.id >= 0) {
      backwards.push_back(node.id);
    } else if (all_bytes_) {
      for (size_t at = end; at > begin; --at)
        backwards.push_back(bytes_[static_cast<uint8_t>(piece[at - 1])]);
    } else if (!in_unknown && unknown_) {
      backwards.push_back(*unknown_);
    }
    in_unknown = node.id < 0;
    end = begin;
  }
  out.insert(out.end(), backwards.rbegin(), backwards.rend());
}

int64_t Unigram::bytes() const {
  return static_cast<int64_t>(sizeof(*this) + edges_.capacity() * sizeof(Edge) +
                              tokens_.capacity() * sizeof(Token));
}

}  // namespace inferd
