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
  struct Node {
    std::shared_ptr<const GraphNode> original;  // of the graph: names this one in later calls
    Work work;
    std::vector<size_t> after;  // places in `nodes`, ascending
  };
  std::mutex mutex;
  std::vector<Node> nodes;    // as they were added to the graph
  std::vector<size_t> order;  // of running
  // What a launch runs. Replaced, never changed: launches in flight keep theirs.
  std::shared_ptr<const std::vector<Work>> works;

  // Makes `works` of `nodes`.
  void refresh();
};

HandleTable<Graph> &graphs();
HandleTable<GraphNode> &graph_nodes();
HandleTable<GraphExec> &graph_execs();

// The nodes, each behind those it depends on; empty with *cyclic = true when there is no such order.
std::vector<GraphNode *> in_order(const Graph &graph, bool *cyclic);

std::shared_ptr<Graph> graph_or_fail(hipGraph_t handle, hipError_t *error);
std::shared_ptr<GraphExec> graph_exec_or_fail(hipGraphExec_t handle, hipError_t *error);
// Null with the error when the graph does not exist or has a circle.
std::shared_ptr<GraphExec> instantiated(hipGraph_t graph, hipError_t *error);

}  // namespace flydsl::emu::hip
