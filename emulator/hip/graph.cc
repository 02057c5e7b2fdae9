#include "emulator/hip/graph.h"

#include <algorithm>
#include <map>

#include "emulator/hip/api_call.h"

namespace flydsl::emu::hip {

// None of these is ever destroyed, as with device_table().
HandleTable<Graph> &graphs() {
  static auto *const table = new HandleTable<Graph>;
  return *table;
}
HandleTable<GraphNode> &graph_nodes() {
  static auto *const table = new HandleTable<GraphNode>;
  return *table;
}
HandleTable<GraphExec> &graph_execs() {
  static auto *const table = new HandleTable<GraphExec>;
  return *table;
}

GraphNode *Graph::add(Work work, const std::vector<GraphNode *> &after) {
  auto node = std::make_shared<GraphNode>();
  node->work = std::move(work);
  for (GraphNode *earlier : after)
    if (std::find(node->after.begin(), node->after.end(), earlier) == node->after.end())
      node->after.push_back(earlier);
  std::lock_guard<std::mutex> lock(mutex);
  nodes.push_back(node);
  return node.get();
}

std::vector<GraphNode *> in_order(const Graph &graph, bool *cyclic) {
  std::map<const GraphNode *, size_t> waiting;  // for so many nodes
  std::map<const GraphNode *, std::vector<GraphNode *>> followers;
  std::vector<GraphNode *> order;
  for (const auto &node : graph.nodes) {
    waiting[node.get()] = node->after.size();
    for (const GraphNode *earlier : node->after) followers[earlier].push_back(node.get());
    if (node->after.empty()) order.push_back(node.get());
  }
  for (size_t i = 0; i < order.size(); ++i)
    for (GraphNode *next : followers[order[i]])
      if (--waiting[next] == 0) order.push_back(next);
  *cyclic = order.size() != graph.nodes.size();
  if (*cyclic) order.clear();
  return order;
}

std::shared_ptr<Graph> graph_or_fail(hipGraph_t handle, hipError_t *error) {
  std::shared_ptr<Graph> graph = graphs().find(handle);
  if (!graph)
    *error = fail(hipErrorInvalidValue, "graph %p does not exist", static_cast<void *>(handle));
  return graph;
}

std::shared_ptr<GraphExec> graph_exec_or_fail(hipGraphExec_t handle, hipError_t *error) {
  std::shared_ptr<GraphExec> exec = graph_execs().find(handle);
  if (!exec)
    *error = fail(hipErrorInvalidValue, "executable graph %p does not exist",
                  static_cast<void *>(handle));
  return exec;
}

void GraphExec::refresh() {
  auto next = std::make_shared<std::vector<Work>>();
  for (const size_t i : order)
    if (nodes[i].work.run) next->push_back(nodes[i].work);
  works = std::move(next);
}

std::shared_ptr<GraphExec> instantiated(hipGraph_t handle, hipError_t *error) {
  const std::shared_ptr<Graph> graph = graph_or_fail(handle, error);
  if (!graph) return nullptr;
  std::lock_guard<std::mutex> lock(graph->mutex);
  std::map<const GraphNode *, size_t> places;
  auto exec = std::make_shared<GraphExec>();
  for (const std::shared_ptr<GraphNode> &node : graph->nodes) {
    places[node.get()] = exec->nodes.size();
    exec->nodes.push_back({node, node->work, {}});
  }
  for (GraphExec::Node &node : exec->nodes) {
    for (const GraphNode *earlier : node.original->after) node.after.push_back(places.at(earlier));
    std::sort(node.after.begin(), node.after.end());
  }
  bool cyclic = false;
  for (const GraphNode *node : in_order(*graph, &cyclic)) exec->order.push_back(places.at(node));
  if (cyclic) {
    *error = fail(hipErrorInvalidValue, "the nodes of the graph depend on each other in a circle");
    return nullptr;
  }
  exec->refresh();
  return exec;
}

}  // namespace flydsl::emu::hip
