// SPDX-License-Identifier: BSD-3-Clause

#include "grid.h"

#include <algorithm>
#include <optional>

namespace md {
namespace {

using Size3 = Grid::Size3;

int product(const Size3& n) { return n[0] * n[1] * n[2]; }

/// A box of `count` places that is as near to a cube as `count` allows.
Size3 box_of(int count) {
  Size3 best = {count, 1, 1};
  for (int z = 1; z * z * z <= count; ++z) {
    if (count % z != 0) continue;
    for (int y = z; y * y <= count / z; ++y) {
      if (count / z % y != 0) continue;
      const Size3 found = {count / z / y, y, z};
      if (found[0] + found[1] + found[2] < best[0] + best[1] + best[2]) best = found;
    }
  }
  return best;
}

/// The ranks of each host, or nothing if hosts have different numbers of them.
std::optional<std::vector<std::vector<int>>> ranks_by_host(const std::vector<int>& leaders) {
  std::vector<std::vector<int>> hosts;
  std::vector<size_t> host_of(leaders.size());
  for (size_t rank = 0; rank < leaders.size(); ++rank) {
    const auto leader = static_cast<size_t>(leaders[rank]);
    if (leader == rank) {
      host_of[rank] = hosts.size();
      hosts.emplace_back();
    }
    hosts[host_of[leader]].push_back(static_cast<int>(rank));
  }
  for (const auto& host : hosts) {
    if (host.size() != hosts[0].size()) return std::nullopt;
  }
  return hosts;
}

}  // namespace

Grid::Grid(double side, double reach, const std::vector<int>& leaders, bool permute)
    : side_(side), processes_(box_of(static_cast<int>(leaders.size()))) {
  // With cells of half the reach a process needs little beyond its neighbours' edges.
  for (size_t i = 0; i < 3; ++i) {
    const int fitting = static_cast<int>(side / (0.5 * reach));
    cells_[i] = std::max(1, fitting / processes_[i]) * processes_[i];
  }
  deal_out(leaders, permute);
  pair_up(reach);
}

void Grid::deal_out(const std::vector<int>& leaders, bool permute) {
  const auto hosts = ranks_by_host(leaders);
  std::vector<int> rank_at(leaders.size());
  Size3 outer = {1, 1, 1}, inner = processes_;
  if (permute && hosts && hosts->size() > 1) {
    // A box of hosts, each with a box of processes.
    outer = box_of(static_cast<int>(hosts->size()));
    inner = box_of(static_cast<int>((*hosts)[0].size()));
    // The long side of one along the short side of the other, to stay near a cube.
    std::reverse(outer.begin(), outer.end());
    for (size_t i = 0; i < 3; ++i) processes_[i] = outer[i] * inner[i];
    for (size_t i = 0; i < 3; ++i) {
      const int fitting = std::max(cells_[i], processes_[i]);
      cells_[i] = fitting / processes_[i] * processes_[i];
    }
  }
  const auto number = [](const Size3& p, const Size3& n) {
    return (p[2] * n[1] + p[1]) * n[0] + p[0];
  };
  for (int z = 0; z < processes_[2]; ++z) {
    for (int y = 0; y < processes_[1]; ++y) {
      for (int x = 0; x < processes_[0]; ++x) {
        const int place = number({x, y, z}, processes_);
        if (product(outer) == 1) {
          rank_at[static_cast<size_t>(place)] = place;
          continue;
        }
        const int host = number({x / inner[0], y / inner[1], z / inner[2]}, outer);
        const int member = number({x % inner[0], y % inner[1], z % inner[2]}, inner);
        rank_at[static_cast<size_t>(place)] =
            (*hosts)[static_cast<size_t>(host)][static_cast<size_t>(member)];
      }
    }
  }
  cells_of_.resize(leaders.size());
  for (int cell = 0; cell < product(cells_); ++cell) {
    Size3 process = place_of(cell);
    for (size_t i = 0; i < 3; ++i) process[i] = process[i] * processes_[i] / cells_[i];
    const int rank = rank_at[static_cast<size_t>(number(process, processes_))];
    owner_.push_back(rank);
    auto& cells = cells_of_[static_cast<size_t>(rank)];
    slot_.push_back(static_cast<int>(cells.size()));
    cells.push_back(cell);
  }
}

void Grid::pair_up(double reach) {
  // The distance along one axis from `from` to `to`, forwards, in cells.
  const auto forwards = [](int from, int to, int n) { return (to - from + n) % n; };
  // The smallest distance of points of two cells along one axis.
  const auto gap = [&](int forward, size_t axis) {
    const int steps = std::min(forward, cells_[axis] - forward);
    return std::max(0, steps - 1) * side_ / cells_[axis];
  };
  partners_.resize(owner_.size());
  for (int a = 0; a < cells(); ++a) {
    const Size3 place_a = place_of(a);
    partners_[static_cast<size_t>(a)].push_back(a);
    for (int b = a + 1; b < cells(); ++b) {
      const Size3 place_b = place_of(b);
      Size3 there{}, back{};
      double distance2 = 0.0;
      for (size_t i = 0; i < 3; ++i) {
        there[i] = forwards(place_a[i], place_b[i], cells_[i]);
        back[i] = forwards(place_b[i], place_a[i], cells_[i]);
        const double apart = gap(there[i], i);
        distance2 += apart * apart;
      }
      if (distance2 >= reach * reach) continue;
      // The one from which the other lies "ahead": so each has about half of the cells around it.
      bool is_task_of_a = there < back;
      if (there == back) is_task_of_a = (a + b) % 2 == 0;
      partners_[static_cast<size_t>(is_task_of_a ? a : b)].push_back(is_task_of_a ? b : a);
    }
  }
  for (auto& partners : partners_) std::sort(partners.begin(), partners.end());
}

double Grid::cell_side() const { return side_ / std::max({cells_[0], cells_[1], cells_[2]}); }

int Grid::most_slots() const {
  size_t most = 0;
  for (const auto& cells : cells_of_) most = std::max(most, cells.size());
  return static_cast<int>(most);
}

std::vector<int> Grid::around(int cell) const {
  std::vector<int> found;
  const Size3 place = place_of(cell);
  for (int z = -1; z <= 1; ++z) {
    for (int y = -1; y <= 1; ++y) {
      for (int x = -1; x <= 1; ++x) {
        const Size3 offset = {x, y, z};
        Size3 there{};
        for (size_t i = 0; i < 3; ++i) there[i] = (place[i] + offset[i] + cells_[i]) % cells_[i];
        found.push_back(number_of(there));
      }
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

int Grid::cell_at(const Vec3& position) const {
  const std::array<double, 3> along = {position.x, position.y, position.z};
  Size3 place{};
  for (size_t i = 0; i < 3; ++i) {
    place[i] = std::clamp(static_cast<int>(along[i] / side_ * cells_[i]), 0, cells_[i] - 1);
  }
  return number_of(place);
}

}  // namespace md
