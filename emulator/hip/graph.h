// Graphs: operations and their order, recorded by a capture or built node by node.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "emulator/hip/handle_table.h"
#include "emulator/hip/hip_abi.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {

struct GraphNode {
  Work work;
  std::vector<GraphNode *> after;
};

struct Graph {
  std::mutex mutex;
  std::vector<std::shared_ptr<GraphNode>> nodes;

  // Adds a node behind `after`, without duplicates.
  GraphNode *add(Work work, const std::vector<GraphNode *> &after);
};

// An instantiated graph. Its operations run one after another, in an order that the edges allow.
struct GraphExec {
  std::vector<Work> works;
};

HandleTable<Graph> &graphs();
HandleTable<GraphNode> &graph_nodes();
HandleTable<GraphExec> &graph_execs();

// The nodes, each behind those it depends on; empty with *cyclic = true when there is no such order.
std::vector<GraphNode *> in_order(const Graph &graph, bool *cyclic);

std::shared_ptr<Graph> graph_or_fail(hipGraph_t handle, hipError_t *error);

}  // namespace flydsl::emu::hip
