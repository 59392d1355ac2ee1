/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_BRIDGE_HPP
#define MOBIUS_BRIDGE_HPP

/**
 * @file
 * Bridges to spawned processes and to other jobs, and ports, as objects (dynamic.h). */

#include <mobius/dynamic.h>
#include <mobius/error.hpp>
#include <mobius/team.hpp>

#include <string>
#include <utility>
#include <vector>

namespace mob {

/** What Bridge::spawn() may be told; mob_spawn_options_t. */
struct SpawnOptions {
  std::vector<std::string> arguments;   /**< after the program's name */
  bool some = false;                    /**< MOB_SPAWN_SOME: fewer processes are enough */
  mob_rank_t root = 0;                  /**< member of the team whose arguments count */
  std::string folder;                   /**< where the processes start; empty: the root's */
  std::vector<std::string> environment; /**< NAME=VALUE, added to the root's environment */
  std::vector<mob_rank_t> beside; /**< for each process the number of one on whose host it starts;
                                     empty: all on the root's */
};

/**
 * Owns a port, where other jobs connect (dynamic.h), and closes it when it is destroyed. Movable.
 *
 * Thread safety: as the C functions, per port.
 */
class Port {
 public:
  /**
   * Opens a port: mob_port_open().
   * @param name  under which others find it; empty: none
   * @throws Error  if it fails
   */
  explicit Port(const std::string& name = {}) {
    char text[MOB_PORT_BYTES] = {};
    mob_port_t port = MOB_PORT_NONE;
    check(mob_port_open(name.empty() ? nullptr : name.c_str(), &port, text));
    port_ = detail::Owner<mob_port_t, &mob_port_close, false>(port);
    text_ = text;
  }

  /** @return the port for the C interface; this object still owns it */
  [[nodiscard]] mob_port_t handle() const noexcept { return port_.get(); }
  /** @return what others connect to; holds the port's key */
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  detail::Owner<mob_port_t, &mob_port_close, false> port_;
  std::string text_;
};

/**
 * Owns a bridge, and disconnects it when it is destroyed. That is collective over all its
 * processes, and is left out while an exception unwinds the stack (error.hpp). Free the teams that
 * merge() made before. Movable. An object without a bridge is false.
 *
 * Thread safety: as the C functions, per bridge.
 */
class Bridge {
 public:
  /** Makes an object without a bridge. */
  Bridge() = default;
  /** Takes ownership of `bridge`, which the C interface made. */
  explicit Bridge(mob_bridge_t bridge) noexcept : bridge_(bridge) {}

  /**
   * Starts processes: mob_spawn(). Collective over the team.
   * @throws Error  if it fails; no process is left then
   */
  [[nodiscard]] static Bridge spawn(const Team& team, const std::string& program, mob_rank_t count,
                                    const SpawnOptions& options = {}) {
    const std::vector<const char*> arguments = pointers(options.arguments);
    const std::vector<const char*> environment = pointers(options.environment);
    const mob_spawn_options_t plain{options.some ? MOB_SPAWN_SOME : 0u, options.root,
                                    options.folder.empty() ? nullptr : options.folder.c_str(),
                                    environment.data(),
                                    options.beside.empty() ? nullptr : options.beside.data()};
    mob_bridge_t bridge = MOB_BRIDGE_NONE;
    check(mob_spawn(team.handle(), program.c_str(), arguments.data(), count, &plain, &bridge));
    return Bridge(bridge);
  }

  /**
   * Takes the bridge to the processes that spawned this one: mob_parent(). Call it once.
   * @return an object without a bridge if no process did
   */
  [[nodiscard]] static Bridge parent() noexcept { return Bridge(mob_parent()); }

  /**
   * Lets another job connect: mob_accept(). Collective over the team.
   * @param team     gets the bridge
   * @param port     of the member 0; the others pass any
   * @param seconds  how long to wait; 0: MOBIUS_JOIN_SECONDS
   * @throws Error   if it fails
   */
  [[nodiscard]] static Bridge accept(const Team& team, const Port& port, uint32_t seconds = 0) {
    const mob_connect_options_t options{0, seconds};
    mob_bridge_t bridge = MOB_BRIDGE_NONE;
    check(mob_accept(team.handle(), port.handle(), &options, &bridge));
    return Bridge(bridge);
  }

  /**
   * Connects to another job: mob_connect(). Collective over the team.
   * @param team     gets the bridge
   * @param port     the text or the name of a port, in the member 0
   * @param seconds  how long to wait; 0: MOBIUS_JOIN_SECONDS
   * @throws Error   if it fails
   */
  [[nodiscard]] static Bridge connect(const Team& team, const std::string& port,
                                      uint32_t seconds = 0) {
    const mob_connect_options_t options{0, seconds};
    mob_bridge_t bridge = MOB_BRIDGE_NONE;
    check(mob_connect(team.handle(), port.c_str(), &options, &bridge));
    return Bridge(bridge);
  }

  /**
   * Connects with the process at the other end of a socket: mob_join().
   * @throws Error  if it fails
   */
  [[nodiscard]] static Bridge join(int socket) {
    mob_bridge_t bridge = MOB_BRIDGE_NONE;
    check(mob_join(socket, &bridge));
    return Bridge(bridge);
  }

  /** @return whether there is a bridge */
  [[nodiscard]] explicit operator bool() const noexcept { return bridge_.get() != nullptr; }
  /** @return the bridge for the C interface; this object still owns it */
  [[nodiscard]] mob_bridge_t handle() const noexcept { return bridge_.get(); }

  /**
   * @return the numbers of the processes on the other side: mob_bridge_others()
   * @throws Error  if it fails
   */
  [[nodiscard]] std::vector<mob_rank_t> others() const {
    std::vector<mob_rank_t> numbers(
        static_cast<size_t>(detail::checked(mob_bridge_others(handle(), nullptr))));
    static_cast<void>(detail::checked(mob_bridge_others(handle(), numbers.data())));
    return numbers;
  }

  /**
   * Makes a team of all processes of the bridge: mob_bridge_merge(). Collective over them.
   * @param children_first  whether the spawned processes have the first ranks; the same everywhere
   * @throws Error          if it fails
   */
  [[nodiscard]] Team merge(bool children_first = false) const {
    mob_team_t team = MOB_TEAM_NONE;
    check(mob_bridge_merge(handle(), children_first ? 1 : 0, &team));
    return Team(team);
  }

  /**
   * Ends the connection before destruction: mob_bridge_disconnect(), collective.
   * @throws Error  if it fails; this object has no bridge then
   */
  void disconnect() { check(bridge_.free()); }

 private:
  /* Ends with a null pointer. */
  static std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> result;
    for (const std::string& text : texts) result.push_back(text.c_str());
    result.push_back(nullptr);
    return result;
  }

  detail::Owner<mob_bridge_t, &mob_bridge_disconnect, true> bridge_;
};

}  // namespace mob

#endif
