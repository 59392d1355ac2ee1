// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Frames in files, for frame_fuzz.cpp. A file holds the records of one frame. Memory lies elsewhere
// in each run, so a word that is an address in it is kept as a mark and an offset.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace frame_files {

using Bytes = std::vector<unsigned char>;

class Files {
 public:
  Files(void* memory, size_t bytes) : memory_(reinterpret_cast<uint64_t>(memory)), bytes_(bytes) {}

  Bytes to_memory(Bytes frame) const {
    for_each_word(frame, [this](uint64_t word) {
      return (word & ~kOffset) == kMark ? memory_ + (word & kOffset) : word;
    });
    return frame;
  }

  void write(const std::string& path, Bytes frame) const {
    for_each_word(frame, [this](uint64_t word) {
      return word - memory_ < bytes_ ? kMark | (word - memory_) : word;
    });
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(frame.data()),
               static_cast<std::streamsize>(frame.size()));
    if (!file.flush()) {
      std::fprintf(stderr, "%s cannot be written\n", path.c_str());
      std::exit(3);
    }
  }

  // Of a file, or of all files of a folder.
  std::vector<Bytes> read(const std::string& path) const {
    std::vector<Bytes> frames;
    if (!std::filesystem::is_directory(path)) return {read_file(path)};
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      paths.push_back(entry.path());
    }
    std::ranges::sort(paths);  // so that a seed always means the same
    for (const auto& each : paths) frames.push_back(read_file(each));
    return frames;
  }

 private:
  static constexpr uint64_t kMark = 0x4D6F'6269'7573'0000;
  static constexpr uint64_t kOffset = 0xFFFF;

  template <typename Change>
  static void for_each_word(Bytes& frame, Change change) {
    for (size_t at = 0; at + sizeof(uint64_t) <= frame.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, frame.data() + at, sizeof word);
      word = change(word);
      std::memcpy(frame.data() + at, &word, sizeof word);
    }
  }

  Bytes read_file(const std::filesystem::path& path) const {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "%s cannot be read\n", path.c_str());
      std::exit(3);
    }
    return to_memory(Bytes(std::istreambuf_iterator<char>(file), {}));
  }

  const uint64_t memory_;
  const size_t bytes_;
};

}  // namespace frame_files
